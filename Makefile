# Every task of the project; a bare `make` lists them. `make check` is what CI runs (`.ci/run`).
# Builds use the versions of Cargo.lock. Only `make test` is the README's command, letter for letter: CI must run what a
# reader types, and `make lint`, which goes first, has refused a stale Cargo.lock by then.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# By name: cargo fmt does not find modules that a macro declares.
RUSTFMT = rustfmt --edition 2024
SOURCES = $(shell find src tests benches examples -name '*.rs')

.PHONY: help
help: ## list the tasks
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start the webhook, send it two recorded AdmissionReviews over HTTPS, go on serving
	cargo run --locked --quiet --example first

.PHONY: certs
certs: ## make a CA and a server certificate for development in certs/
	cargo run --locked --quiet -- certs certs

.PHONY: load
load: ## processor time beside a bare server, memory, start, 5,000 slow connections
	cargo build --locked --release --bin tollgate --example floor --example load
	$${CARGO_TARGET_DIR:-target}/release/examples/load

.PHONY: limits
limits: ## 5,000 slow senders, 64 large bodies, clients that do not read, in 256 MiB; fails when a bar is broken
	cargo build --locked --release --bin tollgate --example load
	$${CARGO_TARGET_DIR:-target}/release/examples/load limits

.PHONY: test
test: ## all tests: the README's command
	cargo test

.PHONY: e2e
e2e: ## with a real cluster: KUBECONFIG, and TOLLGATE_E2E_URL=https://host:port where its API server reaches this machine
	@test -n "$${TOLLGATE_E2E_URL:-}" || { echo "set TOLLGATE_E2E_URL=https://host:port: the API server must reach this machine there" >&2; exit 2; }
	cargo test --locked --test cluster e2e -- --nocapture

.PHONY: lint
lint: ## formatting, lints (warnings are errors), and every combination of features compiles
	$(RUSTFMT) --check $(SOURCES)
	cargo clippy --locked --all-targets -- -D warnings
	cargo check --locked --no-default-features --all-targets
	cargo check --locked --no-default-features --features cli --all-targets
	cargo check --locked --no-default-features --features serve --all-targets
	cargo check --locked --no-default-features --features cluster --all-targets

.PHONY: check
check: lint test ## what CI runs

.PHONY: fix
fix: ## format, and apply what clippy can mend
	$(RUSTFMT) $(SOURCES)
	cargo clippy --fix --allow-dirty --allow-staged --all-targets

.PHONY: bench
bench: ## times as ratios in one run: decode + rules, and validate against only parsing
	cargo bench --locked --bench admit
	cargo bench --locked --bench validate
	cargo bench --locked --bench policies
	cargo bench --locked --bench impact

.PHONY: shapes
shapes: ## the worst request: time, memory and answer of every field, long and wrong (minutes)
	@# The allocator keeps what it has: a system that clears fresh pages is a step in the time of a body, no slope.
	GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=268435456 \
		cargo bench --locked --bench shapes

.PHONY: conformance
conformance: ## the table of agreement with real API servers
	cargo test --locked --lib conformance -- --nocapture --test-threads 1

.PHONY: deny
deny: ## licences, bans and sources (needs cargo-deny)
	cargo deny --offline check licenses bans sources

.PHONY: release
release: ## the optimised binary, target/release/tollgate
	cargo build --locked --release
