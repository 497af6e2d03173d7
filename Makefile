# Two commands do everything on a fresh machine: make demo and make test.
# They need only Go. Everything else builds its tools once (scripts/tool.sh).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# What `make bench` asks for, e.g. make bench BENCH='--cases 500 --sync always'.
BENCH ?= --cases 2000 --concurrency 64

# Which targets `make fuzz` runs, by package and name.
FUZZ ?= .

# The race detector needs cgo, which Go turns off by itself where there is no
# C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race,$(warning no C compiler: testing without the race detector))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: ## Run req-8472 to both of its endings on an embedded desk
	@go run ./cmd/amends-dev demo

.PHONY: up
up: ## Keep an embedded desk running and print how to use it
	@go run ./cmd/amends-dev up

.PHONY: bench
bench: ## Load the embedded desk with whole cases (BENCH='--cases N --concurrency C')
	@go run ./cmd/amends-dev bench $(BENCH)

.PHONY: build
build: ## Build every service and command into bin/
	go build -trimpath -o bin/ ./services/... ./cmd/...

.PHONY: test
test: ## Run all tests with the race detector
	go test $(RACE) -timeout 9m ./...

.PHONY: test-crash
test-crash: ## Kill services at every place a case passes, and print what came of it
	go test -count=1 -timeout 6m -parallel 6 -v -run '^TestCrashEverywhere$$' ./e2e -args -crash-everywhere

# SEED repeats one schedule after another from a number that a failure printed.
.PHONY: test-schedules
test-schedules: ## Judge money under 20,000 random schedules, and print what they met
	go test -count=1 -timeout 10m -v -run '^TestSchedules' ./services/refund-executor/executor -rapid.checks=5000 $(if $(SEED),-rapid.seed=$(SEED))

.PHONY: test-short
test-short: ## Run the quick tests, without the race detector
	go test -short -timeout 2m ./...

.PHONY: fuzz
fuzz: ## Fuzz the parsers at the door for a minute, the others for FUZZTIME (2s) each
	scripts/fuzz.sh "$(FUZZ)"

.PHONY: check
check: lint contracts generated tidy ## Run every gate besides the tests

.PHONY: lint
lint: ## Lint and check the format of the Go code
	"$$(scripts/tool.sh golangci-lint)" run ./...

.PHONY: contracts
contracts: ## Lint proto/ and compare it with its baseline
	scripts/contracts.sh check

.PHONY: generated
generated: ## Check that generated files are what their sources give
	scripts/check-generated.sh

.PHONY: tidy
tidy: ## Check that go.mod and go.sum are tidy
	go mod tidy -diff

.PHONY: generate
generate: ## Generate code from proto/, and the generated documents
	PATH="$$(dirname "$$(scripts/tool.sh protoc-gen-go)"):$$PATH" "$$(scripts/tool.sh buf)" generate
	go generate ./...

.PHONY: baseline
baseline: ## Take proto/ as it is for the baseline of the breaking check
	scripts/contracts.sh baseline

.PHONY: fmt
fmt: ## Format the Go code
	"$$(scripts/tool.sh golangci-lint)" fmt ./...
