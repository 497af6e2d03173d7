// Package edgetest makes certificates for tests of edges and their clients.
package edgetest
