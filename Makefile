# Every task of the project; a bare `make` lists them. `make check` is what CI runs (`.ci/run`).
# Builds use the versions of Cargo.lock. Only `make test` is the README's command, letter for letter: CI must run what a
# reader types, and `make lint`, which goes first, has refused a stale Cargo.lock by then.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# By name: cargo fmt does not find modules that a macro declares.
RUSTFMT = rustfmt --edition 2024
SOURCES = $(shell find src tests benches examples -name '*.rs')

TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
VERSION = $(shell awk -F'"' '/^version = / {print $$2; exit}' Cargo.toml)
SOURCE = $(shell awk -F'"' '/^repository = / {print $$2; exit}' Cargo.toml)
IMAGE ?= tollgate:$(VERSION)
# Where the image runs. Releases are made for the musl targets; glibc links statically as well, and needs no second target.
STATIC_TARGET ?= $(shell rustc -vV | awk '/^host: / {print $$2}')
STATIC_BINARY = $(TARGET_DIR)/$(STATIC_TARGET)/release/tollgate
AUDITABLE = $(shell cargo auditable --version >/dev/null 2>&1 && echo auditable)

.PHONY: help
help: ## list the tasks
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

.PHONY: fixes
fixes: ## --fix on every fixture and every case of the corpus (minutes)
	cargo test --locked --lib fixes_never_make_anything_worse -- --ignored --nocapture

.PHONY: docs
docs: ## write the generated parts of docs/ and the output of its commands anew; read the difference
	SNAPSHOTS=overwrite cargo test --locked --lib reference::
	SNAPSHOTS=overwrite cargo test --locked --test cluster reference_of_metrics
	SNAPSHOTS=overwrite cargo test --locked --test fixtures docs/
	SNAPSHOTS=overwrite cargo test --locked --test fixtures README

.PHONY: book
book: ## docs/ as a searchable book in target/book (needs mdbook)
	@rm -rf $(TARGET_DIR)/book-pages && mkdir -p $(TARGET_DIR) && cp -r docs $(TARGET_DIR)/book-pages
	@# Files outside of docs/ are not part of the book: their links lead to the forge.
	@cd $(TARGET_DIR)/book-pages && find . -mindepth 2 -name '*.md' -exec sed -i -E 's#\]\(\.\./\.\./#](SOURCE/#g' {} + \
		&& find . -maxdepth 1 -name '*.md' -exec sed -i -E 's#\]\(\.\./#](SOURCE/#g' {} + \
		&& find . -name '*.md' -exec sed -i 's#](SOURCE/#]($(SOURCE)/blob/main/#g' {} +
	mdbook build $(TARGET_DIR)/book-pages --dest-dir $(abspath $(TARGET_DIR))/book
	@echo "$(TARGET_DIR)/book/index.html"

.PHONY: large
large: ## impact, audit and snapshot of 50,000 devices and 20,000 pods: same numbers, memory (minutes)
	cargo test --locked --test cluster large:: -- --ignored --nocapture

.PHONY: deny
deny: ## licences, bans and sources (needs cargo-deny)
	cargo deny --offline check licenses bans sources

.PHONY: monitoring
monitoring: ## alert rules and dashboard with promtool: syntax, and each alert firing and quiet (needs promtool and jq)
	promtool check rules manifests/monitoring/rules.yaml
	promtool test rules manifests/monitoring/tests/*.test.yaml
	@mkdir -p $(TARGET_DIR)
	jq -f manifests/monitoring/tests/dashboard.jq manifests/monitoring/dashboard.json > $(TARGET_DIR)/dashboard-queries.yaml
	promtool check rules $(TARGET_DIR)/dashboard-queries.yaml

.PHONY: workflows
workflows: ## the workflows with actionlint and zizmor, offline
	actionlint
	zizmor --offline .github action.yml

.PHONY: static
static: ## the static binary of the image, with the list of its dependencies inside (cargo-auditable, if installed)
	RUSTFLAGS="-C target-feature=+crt-static" \
		cargo $(AUDITABLE) build --locked --release --bin tollgate --target $(STATIC_TARGET)
	@# Without the symbol table: 3 MB less to pull, and a panic still says file and line.
	strip --strip-all --keep-section=.dep-v0 $(STATIC_BINARY)

.PHONY: static-test
static-test: static ## it is static, at most 25 MB, and serves as a stranger in a read-only empty root
	TOLLGATE_STATIC_BINARY=$(abspath $(STATIC_BINARY)) TOLLGATE_AUDITABLE=$(AUDITABLE) \
		cargo test --locked --test serve empty_root -- --include-ignored

.PHONY: sbom
sbom: ## the bill of materials of the binary, CycloneDX (needs cargo-cyclonedx)
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) cargo cyclonedx -q --format json --spec-version 1.5 \
		--describe binaries --no-build-deps --target $(STATIC_TARGET)
	@mkdir -p $(TARGET_DIR)
	@# Where it was made is nobody's matter, and differs between machines.
	sed 's#path+file://$(CURDIR)#pkg:cargo/tollgate#g' tollgate_bin.cdx.json > $(TARGET_DIR)/tollgate.cdx.json
	@rm tollgate_bin.cdx.json

.PHONY: image
image: static sbom ## the image IMAGE (tollgate:VERSION), with the docker, podman or buildah of this machine
	@rm -rf $(TARGET_DIR)/image && mkdir -p $(TARGET_DIR)/image
	@cp $(STATIC_BINARY) $(TARGET_DIR)/tollgate.cdx.json LICENSE $(TARGET_DIR)/image/
	@builder=; for name in docker podman buildah; do \
		if $$name info >/dev/null 2>&1; then builder=$$name; break; fi; done; \
	test -n "$$builder" || { echo "no builder: docker, podman or buildah must be installed and running" >&2; exit 2; }; \
	set -x; $$builder build --file Dockerfile --tag $(IMAGE) --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$$(git rev-parse HEAD) --build-arg SOURCE=$(SOURCE) \
		--build-arg CREATED=$$(git log -1 --format=%cI) $(TARGET_DIR)/image

.PHONY: package-test
package-test: ## all tests in the crate as it is packaged
	cargo package --locked --no-verify
	@rm -rf $(TARGET_DIR)/package/tollgate-$(VERSION)
	tar -C $(TARGET_DIR)/package -xzf $(TARGET_DIR)/package/tollgate-$(VERSION).crate
	CARGO_TARGET_DIR=$(abspath $(TARGET_DIR)) cargo test --locked --manifest-path $(TARGET_DIR)/package/tollgate-$(VERSION)/Cargo.toml

.PHONY: release
release: ## the optimised binary, target/release/tollgate
	cargo build --locked --release
