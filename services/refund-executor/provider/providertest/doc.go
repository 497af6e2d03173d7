// Package providertest holds the provider in memory, for tests and simulations,
// and the suite that every adapter of a payments provider passes.
package providertest
