# All tasks of the project; `make` without a target lists them. `make check` is what CI runs (`.ci/run`).
# Builds use the versions in Cargo.lock. Only `make test` omits --locked, because CI must run the exact command from the
# README. `make lint` runs first and fails if Cargo.lock is out of date.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Files are listed by name, because cargo fmt does not find modules that a macro declares.
RUSTFMT = rustfmt --edition 2024
SOURCES = build.rs $(shell find src crates tests benches examples fuzz -name '*.rs')

TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
# In the order in which they are published: each uses only those before it.
CRATES = tollgate-formats tollgate-document tollgate-cel tollgate-api tollgate-allocator tollgate-engine tollgate-forecast \
	tollgate-drain tollgate-picture tollgate-ui tollgate-files tollgate-cluster tollgate-server tollgate
VERSION = $(shell awk -F'"' '/^version = / {print $$2; exit}' Cargo.toml)
SOURCE = $(shell awk -F'"' '/^repository = / {print $$2; exit}' Cargo.toml)
IMAGE ?= tollgate:$(VERSION)
# Target of the image. Releases use the musl targets; glibc also links statically and does not need a second target.
STATIC_TARGET ?= $(shell rustc -vV | awk '/^host: / {print $$2}')
# The image has no commands for a desk: neither `ui` nor `mcp`.
IMAGE_FEATURES = --no-default-features --features online
REPRODUCE = $(abspath $(TARGET_DIR))/reproduce
STATIC_BINARY = $(TARGET_DIR)/$(STATIC_TARGET)/release/tollgate
# Panics name files of dependencies and of the standard library. The binary must not depend on the folder in which cargo
# keeps the former, nor on whether the toolchain has the sources of the latter (rustup's component rust-src): without
# them, the compiler writes /rustc/COMMIT.
SAME_PATHS = --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo \
	--remap-path-prefix=$(shell rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(shell rustc -vV | awk '/^commit-hash: / {print $$2}')
AUDITABLE = $(shell cargo auditable --version >/dev/null 2>&1 && echo auditable)

.PHONY: help
help: ## list the tasks
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## start the webhook, send it two recorded AdmissionReviews over HTTPS, and keep it running
	cargo run --locked --quiet --example first

.PHONY: certs
certs: ## create a CA and a server certificate for development in certs/
	cargo run --locked --quiet -- certs certs

.PHONY: load
load: ## measure CPU time compared with a minimal server, memory, startup time, and 5,000 slow connections
	cargo build --locked --release --bin tollgate --example floor --example load
	$${CARGO_TARGET_DIR:-target}/release/examples/load

.PHONY: limits
limits: ## test slow, large and non-reading clients, and 6,000 busy connections, in 256 MiB; fail if a limit is exceeded
	cargo build --locked --release --bin tollgate --example load
	$${CARGO_TARGET_DIR:-target}/release/examples/load limits

.PHONY: chaos
chaos: ## break three replicas and their API server under load in 20 ways; fail if an answer is wrong or lost (4 minutes)
	cargo build --locked --release --bin tollgate --example load
	$(TARGET_DIR)/release/examples/load chaos "$(FAULT)"

MINUTES ?= 60

.PHONY: soak
soak: ## run a server under load for MINUTES (default 60), and draw memory, descriptors and latency in target/soak
	cargo build --locked --release --bin tollgate --example load
	$(TARGET_DIR)/release/examples/load soak $(MINUTES) $(TARGET_DIR)/soak

.PHONY: test
test: ## run all tests, with the command from the README
	cargo test

.PHONY: e2e
e2e: ## test with a real cluster; needs KUBECONFIG and TOLLGATE_E2E_URL=https://host:port, where the API server reaches this machine
	@test -n "$${TOLLGATE_E2E_URL:-}" || { echo "set TOLLGATE_E2E_URL=https://host:port, an address at which the API server can reach this machine" >&2; exit 2; }
	cargo test --locked --test cluster e2e -- --nocapture

.PHONY: browser-test
browser-test: ## test the HTML pages in headless Chromium; with TOLLGATE_AXE=axe.min.js also with axe-core
	cargo test --locked -p tollgate-picture --test browser -- --nocapture
	cargo test --locked --test ui -- --nocapture

.PHONY: lint
lint: ## check formatting and lints (warnings are errors), also of the program without the webhook and without a client
	$(RUSTFMT) --check $(SOURCES)
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p tollgate --no-default-features -- -D warnings
	cargo clippy --locked -p tollgate --no-default-features --features cluster,ui,mcp -- -D warnings
	cargo check --locked -p tollgate --no-default-features --features mcp

.PHONY: windows
windows: ## check that everything but `serve` compiles for Windows (needs that target of rustup, and mingw-w64)
	cargo check --locked --bin tollgate --no-default-features --features cluster,ui,mcp --target x86_64-pc-windows-gnu

.PHONY: check
check: lint test ## run everything that CI runs

.PHONY: fix
fix: ## format the code, and apply the fixes that clippy suggests
	$(RUSTFMT) $(SOURCES)
	cargo clippy --fix --allow-dirty --allow-staged --all-targets

.PHONY: bench
bench: ## measure ratios of times: decoding and rules, and validation compared with parsing only
	cargo bench --locked --bench admit
	cargo bench --locked --bench validate
	cargo bench --locked --bench policies
	cargo bench --locked --bench impact

.PHONY: shapes
shapes: ## measure the worst requests: time, memory and response for every field with long and invalid values (minutes)
	@# The allocator keeps its memory; clearing fresh pages would otherwise distort the times of large bodies.
	GLIBC_TUNABLES=glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=268435456 \
		cargo bench --locked --bench shapes
	cargo test --locked --test engine in_every_style -- --ignored

.PHONY: conformance
conformance: ## print the table of agreement with real API servers
	cargo test --locked --test engine conformance -- --nocapture --test-threads 1

.PHONY: fixes
fixes: ## run --fix on every fixture and every case of the corpus (minutes)
	cargo test --locked --lib fixes_never_make_anything_worse -- --ignored --nocapture

.PHONY: new-rule
new-rule: ## write the file, page, fixture and table line of a new lint: make new-rule NAME=my-lint
	@cargo run --locked --quiet --example new_rule -- "$(NAME)"

.PHONY: docs
docs: ## update the generated parts of docs/ and the recorded output of commands; review the diff
	SNAPSHOTS=overwrite cargo test --locked --lib reference::
	SNAPSHOTS=overwrite cargo test --locked --test cluster reference_of_metrics
	SNAPSHOTS=overwrite cargo test --locked --test fixtures docs/
	SNAPSHOTS=overwrite cargo test --locked --test fixtures README

.PHONY: book
book: ## build docs/ as a searchable book in target/book (needs mdbook)
	@rm -rf $(TARGET_DIR)/book-pages && mkdir -p $(TARGET_DIR) && cp -r docs $(TARGET_DIR)/book-pages
	@# Files outside docs/ are not part of the book, so links to them point to the repository.
	@cd $(TARGET_DIR)/book-pages && find . -mindepth 2 -name '*.md' -exec sed -i -E 's#\]\(\.\./\.\./#](SOURCE/#g' {} + \
		&& find . -maxdepth 1 -name '*.md' -exec sed -i -E 's#\]\(\.\./#](SOURCE/#g' {} + \
		&& find . -name '*.md' -exec sed -i 's#](SOURCE/#]($(SOURCE)/blob/main/#g' {} +
	mdbook build $(TARGET_DIR)/book-pages --dest-dir $(abspath $(TARGET_DIR))/book
	@echo "$(TARGET_DIR)/book/index.html"

.PHONY: large
large: ## check impact, audit and snapshot with 50,000 devices and 20,000 pods: results and memory (minutes)
	cargo test --locked --test cluster large:: -- --ignored --nocapture

.PHONY: forecast-cases
forecast-cases: ## compare forecasts with all recorded cases of the scheduler's allocator (minutes)
	cargo test --locked --test cli all_cases_end_as_recorded -- --ignored

# What libFuzzer needs of the compiler: every branch and comparison is counted. Works with the toolchain of
# rust-toolchain.toml; sanitizers, which need a nightly one, would find little, because no crate here has unsafe code.
FUZZ_FLAGS = --cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
	-C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
	$(FUZZ_COMPARES)
# Makes constants that the code compares with part of inputs. Three times as many inputs are tried without:
# make fuzz FUZZ_COMPARES=
FUZZ_COMPARES ?= -C llvm-args=-sanitizer-coverage-trace-compares
FUZZ_DIR = $(TARGET_DIR)/fuzz
SECONDS ?= 60
TARGET ?=
# Inputs to try: the default, -1, is as many as the time allows.
RUNS ?= -1

.PHONY: fuzz-build
fuzz-build:
	@# The flags are only for the host's target, and not for build scripts: a target makes the difference.
	RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --locked --profile fuzz -p tollgate-fuzz --bin fuzz --features libfuzzer \
		--target $(STATIC_TARGET) --target-dir $(FUZZ_DIR)

.PHONY: fuzz
fuzz: fuzz-build ## look for inputs that break a law: make fuzz SECONDS=600 [TARGET=review]; needs a C++ compiler
	@bin=$(FUZZ_DIR)/$(STATIC_TARGET)/fuzz/fuzz; failed=; \
	for name in $(or $(TARGET),$$($$bin list 2>/dev/null | cut -d" " -f1)); do \
		len=$$($$bin list 2>/dev/null | awk -v name=$$name '$$1 == name {print $$2}'); \
		work=$(FUZZ_DIR)/inputs/$$name; mkdir -p $$work $(FUZZ_DIR)/found; \
		$$bin unpack $$name $$work >/dev/null 2>&1; $$bin words $$name 2>/dev/null >$(FUZZ_DIR)/$$name.dict; \
		TOLLGATE_FUZZ=$$name $$bin -max_total_time=$(SECONDS) -runs=$(RUNS) -timeout=1 -rss_limit_mb=2048 \
			-max_len=$$len -dict=$(FUZZ_DIR)/$$name.dict -print_final_stats=1 \
			-artifact_prefix=$(FUZZ_DIR)/found/$$name- $$work >$(FUZZ_DIR)/$$name.log 2>&1 \
			|| { failed=1; tail -40 $(FUZZ_DIR)/$$name.log; }; \
		awk -v name=$$name '/stat::number_of_executed_units/ {runs = $$2} /stat::slowest_unit_time_sec/ {slow = $$2} \
			/ cov: / {for (i = 1; i < NF; i++) if ($$i == "cov:") cov = $$(i + 1)} \
			END {printf "%-11s %9d runs, %6d edges, slowest %d s\n", name, runs, cov, slow}' $(FUZZ_DIR)/$$name.log; \
	done; test -z "$$failed"

.PHONY: fuzz-store
fuzz-store: fuzz-build ## keep the smallest inputs that reach the same code as all that were found, in fuzz/corpus
	@bin=$(FUZZ_DIR)/$(STATIC_TARGET)/fuzz/fuzz; \
	for name in $(or $(TARGET),$$($$bin list 2>/dev/null | cut -d" " -f1)); do \
		rm -rf $(FUZZ_DIR)/small/$$name && mkdir -p $(FUZZ_DIR)/small/$$name; \
		TOLLGATE_FUZZ=$$name $$bin -set_cover_merge=1 -use_counters=0 -timeout=5 \
			$(FUZZ_DIR)/small/$$name $(FUZZ_DIR)/inputs/$$name >/dev/null 2>&1; \
		echo "$$name $$($$bin pack $$name $(FUZZ_DIR)/small/$$name 2>/dev/null)"; \
	done

# From the component llvm-tools of the toolchain.
LLVM_BIN ?= $(shell rustc --print sysroot)/lib/rustlib/$(STATIC_TARGET)/bin

.PHONY: fuzz-coverage
fuzz-coverage: ## print which share of the lines of each crate the stored inputs run (needs llvm-tools and jq)
	RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/fuzz/instrumented cargo build --locked -p tollgate-fuzz --bin corpus
	@dir=$(FUZZ_DIR)/coverage; bin=$(TARGET_DIR)/debug/corpus; rm -rf $$dir; mkdir -p $$dir; \
	for name in $$($$bin list 2>/dev/null | cut -d" " -f1); do \
		LLVM_PROFILE_FILE=$$dir/$$name.profraw $$bin run $$name >/dev/null || exit 1; \
	done; \
	$(LLVM_BIN)/llvm-profdata merge -sparse $$dir/*.profraw -o $$dir/all.profdata; \
	$(LLVM_BIN)/llvm-cov export -summary-only -instr-profile $$dir/all.profdata $$bin \
		| jq -r --arg root $(CURDIR)/ -f fuzz/coverage.jq

# Part of all mutants to test, such as 3/200, and further options of cargo-mutants, such as --list.
SHARD ?= 0/200
FLAGS ?=
MUTANTS = $(abspath $(TARGET_DIR))/mutants
MUTATED = $(addprefix crates/engine/src/,rules tolerance policy impact) $(addprefix crates/,forecast/src allocator/src \
	drain/src cluster/src/register) src/registration src/cli/serve/register
# The programs that test these files and need neither a browser nor a minute.
MUTANT_TESTS = --lib $(addprefix --test ,engine fixtures cli cluster behaviour nodes plans policy_diff properties recorded)

.PHONY: mutants
mutants: ## change the last commit in one place at a time, and list changes that no test notices: make mutants SHARD=3/200 (needs cargo-mutants)
	@cargo mutants --version >/dev/null 2>&1 || { echo "run: cargo install --locked cargo-mutants" >&2; exit 2; }
	@rm -rf $(MUTANTS)/source && mkdir -p $(MUTANTS)/source && git archive HEAD | tar -x -C $(MUTANTS)/source
	@# cargo-mutants does not find modules that a macro declares, so the copy declares them again, for no build.
	@cd $(MUTANTS)/source/crates/engine/src/rules && for list in lint documented; do for file in $$list/*.rs; do \
		echo "#[cfg(any())] mod $$(basename $$file .rs);" >>$$list.rs; done; done
	cargo mutants --dir $(MUTANTS)/source --in-place --workspace --output $(MUTANTS) --shard $(SHARD) \
		--test-workspace=true --timeout-multiplier=3 $(foreach path,$(MUTATED),-f '$(path).rs' -f '$(path)/**') $(FLAGS) \
		-- $(MUTANT_TESTS)

.PHONY: deny
deny: ## check licenses, banned crates and sources (needs cargo-deny)
	cargo deny --offline check licenses bans sources

.PHONY: monitoring
monitoring: ## check the alert rules and the dashboard with promtool, and test each alert (needs promtool and jq)
	promtool check rules manifests/monitoring/rules.yaml
	promtool test rules manifests/monitoring/tests/*.test.yaml
	@mkdir -p $(TARGET_DIR)
	jq -f manifests/monitoring/tests/dashboard.jq manifests/monitoring/dashboard.json > $(TARGET_DIR)/dashboard-queries.yaml
	promtool check rules $(TARGET_DIR)/dashboard-queries.yaml

.PHONY: workflows
workflows: ## check the workflows with actionlint and zizmor, offline
	actionlint
	zizmor --offline .github action.yml

.PHONY: static
static: ## build the static binary for the image, with an embedded list of dependencies if cargo-auditable is installed
	RUSTFLAGS="-C target-feature=+crt-static $(SAME_PATHS)" \
		cargo $(AUDITABLE) build --locked --release --bin tollgate --target $(STATIC_TARGET) $(IMAGE_FEATURES)
	@# Removing the symbol table saves 3 MB; a panic still shows the file and line.
	strip --strip-all --keep-section=.dep-v0 $(STATIC_BINARY)

.PHONY: static-test
static-test: static ## check that the binary is static, at most 25 MB, and runs as an unknown user in an empty read-only root
	TOLLGATE_STATIC_BINARY=$(abspath $(STATIC_BINARY)) TOLLGATE_AUDITABLE=$(AUDITABLE) \
		cargo test --locked --test serve empty_root -- --include-ignored

.PHONY: reproduce
reproduce: ## build the static binary of the last commit in two folders, each with another CARGO_HOME, and compare the bytes
	@# The folders of cargo differ only by name; what was downloaded before is used by both.
	@rm -rf $(REPRODUCE) && for name in one the-other; do \
		mkdir -p $(REPRODUCE)/$$name/source $(REPRODUCE)/$$name/cargo; \
		git archive HEAD | tar -x -C $(REPRODUCE)/$$name/source; \
		ln -s $(or $(CARGO_HOME),$(HOME)/.cargo)/* $(REPRODUCE)/$$name/cargo/; \
		CARGO_HOME=$(REPRODUCE)/$$name/cargo CARGO_TARGET_DIR=$(REPRODUCE)/$$name/target \
			$(MAKE) --no-print-directory -C $(REPRODUCE)/$$name/source static \
			TARGET_DIR=$(REPRODUCE)/$$name/target || exit 1; \
	done
	@cd $(REPRODUCE) && sha256sum */target/$(STATIC_TARGET)/release/tollgate \
		&& cmp */target/$(STATIC_TARGET)/release/tollgate && echo "both builds are the same bytes"

.PHONY: sbom
sbom: ## write the software bill of materials in CycloneDX format (needs cargo-cyclonedx)
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) cargo cyclonedx -q --format json --spec-version 1.5 \
		--describe binaries --no-build-deps --target $(STATIC_TARGET) $(IMAGE_FEATURES)
	@mkdir -p $(TARGET_DIR)
	@# Remove the build path, which differs between machines.
	sed 's#path+file://$(CURDIR)#pkg:cargo/tollgate#g' tollgate_bin.cdx.json > $(TARGET_DIR)/tollgate.cdx.json
	@rm tollgate_bin.cdx.json

.PHONY: image
image: static sbom ## build the image IMAGE (default: tollgate:VERSION) with docker, podman or buildah
	@rm -rf $(TARGET_DIR)/image && mkdir -p $(TARGET_DIR)/image
	@cp $(STATIC_BINARY) $(TARGET_DIR)/tollgate.cdx.json LICENSE $(TARGET_DIR)/image/
	@builder=; for name in docker podman buildah; do \
		if $$name info >/dev/null 2>&1; then builder=$$name; break; fi; done; \
	test -n "$$builder" || { echo "no image builder found; install and start docker, podman or buildah" >&2; exit 2; }; \
	set -x; $$builder build --file Dockerfile --tag $(IMAGE) --build-arg VERSION=$(VERSION) \
		--build-arg REVISION=$$(git rev-parse HEAD) --build-arg SOURCE=$(SOURCE) \
		--build-arg CREATED=$$(git log -1 --format=%cI) $(TARGET_DIR)/image

.PHONY: package-test
package-test: ## run the tests of the program in its package, with the packages of the other crates
	cargo package --locked --workspace --no-verify
	@cd $(TARGET_DIR)/package && for crate in $(CRATES); do rm -rf $$crate-$(VERSION); tar -xzf $$crate-$(VERSION).crate; done
	CARGO_TARGET_DIR=$(abspath $(TARGET_DIR)) cargo test --manifest-path $(TARGET_DIR)/package/tollgate-$(VERSION)/Cargo.toml \
		$(foreach crate,$(filter-out tollgate,$(CRATES)),--config 'patch.crates-io.$(crate).path="$(abspath $(TARGET_DIR))/package/$(crate)-$(VERSION)"')

.PHONY: release
release: ## build the optimized binary, target/release/tollgate
	cargo build --locked --release
