# One command each: everything that a target needs is set up by it, inside this
# checkout, without root. `make` alone lists the targets.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

help: ## list the targets
	@echo "Peregrine: make TARGET"
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
	@echo "With your own MariaDB: MARIADB_BASEDIR=DIR MARIADB_SOURCE=DIR make TARGET"

bench: build ## set up, build, run the quick comparison of all engines, print where the report lies
	@if [ -e target/mariadb/current/env ]; then target/release/peregrine bench run --profile quick; \
	else echo "No MariaDB here: measuring embedded stores alone."; \
		target/release/peregrine bench run --profile quick --engines peregrine-library,sqlite,lmdb,redb,fjall; fi

build: library plugin ## build the library, the command and the plug-in

library:
	cargo build --release --workspace

mariadb: ## fetch a private MariaDB into target/mariadb (where packages can be fetched)
	@mariadb/setup/server || [ $$? -eq 69 ]

# A second make, because the compiler's arguments are known once MariaDB is there.
plugin: library mariadb ## compile the plug-in into target/plugin
	@if [ -e target/mariadb/current/env ]; then $(MAKE) -f mariadb/setup/plugin.mk; \
	else echo "No MariaDB here: going on without the plug-in, with the embedded engine."; fi

test: unit mtr compare sessions workloads orders ## every test: library, plug-in, comparison with InnoDB, sessions that meet, workloads, orders of threads

unit: mariadb
	cargo test --workspace

mtr: plugin ## the plug-in's tests, run by MariaDB's own test runner
	@mariadb/mtr/run own

compare: plugin ## the same statements on InnoDB and on Peregrine, answers compared; a suite of MariaDB's own, too
	@mariadb/mtr/run same
	@mariadb/mtr/run difference period

sessions: plugin ## statements once answered wrongly, and slices of long proofs: anomalies, histories, bank, pushdown, changes, differential, memory
	@if [ -e target/mariadb/current/env ]; then \
		target/release/peregrine bench behaviour --engines peregrine --deadlocks 3 && \
		target/release/peregrine prove histories --target server --duration 4 --window 1000 --crash-every 3 && \
		target/release/peregrine prove bank --duration 10 --kill-every 4 && \
		target/release/peregrine prove pushdown --queries 400 && \
		target/release/peregrine prove changes --statements 1500 && \
		target/release/peregrine prove differential --statements 4000 && \
		target/release/peregrine prove answers && \
		{ target/release/peregrine bench memory --duration 6 --cache 16M || [ $$? -eq 69 ]; }; \
	else echo "No MariaDB here: going on without servers."; fi

workloads: plugin ## every shipped workload at a small size for a moment: right answers on InnoDB, MyISAM and Peregrine
	@if [ -e target/mariadb/current/env ]; then rm -rf target/workloads-slice && \
		target/release/peregrine bench run --workload all --engines innodb,myisam,peregrine --threads 3 --cache 64M --protocol both \
			--set rows=2000 --set t1_rows=3000 --set t2_rows=2000 --set warehouses=2 --set items=200 \
			--set customers=30 --set products=100 --set orders=200 --set actors=20 --set titles=20 --set divide=100 \
			--warm-up 0 --run-time 0.1 --runs 1 --out target/workloads-slice && \
		verify/url; \
	else echo "No MariaDB here: going on without servers."; fi

engines-funcs: plugin ## MariaDB's suite engines/funcs with Peregrine as the default engine
	@mariadb/mtr/run engines-funcs

lint: ## formats and lints of Rust, its documentation, C++ and shell
	cargo fmt --all --check
	cargo clippy --workspace --exclude peregrine-loom --all-targets -- -D warnings
	cargo clippy -p peregrine-loom --lib --test models --test planted -- -D warnings
	cargo clippy -p peregrine -p peregrine-prove --features broken,shaken --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc -q --workspace --exclude peregrine-loom --no-deps --document-private-items
	@setup/check-style

format: ## put Rust and C++ into the project's format
	cargo fmt --all
	@setup/check-style --fix

docs: ## the documents, the library's reference and the last report as a site in target/site
	@setup/site

verify-flight: build ## what the project promises, a line a point: held or not, with its figure
	@verify/flight

verify-transactions: build ## what transactions promise, a line a point: held or not, with its figure
	@verify/transactions

power-loss: library ## power lost at every moment of many workloads on a simulated disk (OPTIONS="--images N --seed S")
	target/release/peregrine prove power-loss $(OPTIONS)

io-errors: library ## every call to the system failing, and the disk full at every point, on a simulated disk
	target/release/peregrine prove io-errors $(OPTIONS)

disk-faults: library ## flipped bits, stale and misplaced writes on a simulated disk
	target/release/peregrine prove disk-faults $(OPTIONS)

bit-flips: library ## every bit of sampled pages, headers and log blocks flipped, stale and misplaced ones (OPTIONS="--samples N")
	target/release/peregrine prove bit-flips $(OPTIONS)

fuzz: library ## hostile input for every decoder and for whole files (OPTIONS="--duration SECONDS")
	target/release/peregrine prove fuzz $(OPTIONS)

knobs: ## write docs/knobs.md anew, from the table of tuning constants
	PEREGRINE_WRITE_DOCUMENTS=1 cargo test -q -p peregrine --lib knobs::tests::the_document_says_what_the_table_says

shaken: ## the engine's tests with every tuning constant drawn from its range (PEREGRINE_SHAKEN=SEED, without one a fresh seed)
	cargo test -p peregrine --lib --test database --features shaken

schedules: ## the whole engine in orders of threads that a seed decides, knobs drawn at random (OPTIONS="--seed N --duration SECONDS")
	cargo build -q -p peregrine-prove --features shaken,broken
	target/debug/peregrine-prove schedules $(OPTIONS)

# From a fresh seed each time; the line tells it. First the tests of the model that judges.
orders:
	cargo test -q -p peregrine-prove --lib --features shaken,broken schedules
	@$(MAKE) schedules OPTIONS="--duration 180 --schedules 1000000000"

# Servers with the shaken plug-in, from a fresh seed: many short lives, each with other knobs.
plans: mariadb ## random statements on shaken servers for five minutes
	@if [ -e target/mariadb/current/env ]; then $(MAKE) statements \
		OPTIONS="--seed $$(date +%s) --duration 300 --statements 1000000000 --statements-a-life 5000"; \
	else echo "No MariaDB here: going on without servers."; fi

# Optimised, and with all checks: what runs for hours.
checked := CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
	cargo build -q --release --target-dir target/shaken

shaken-command: ## peregrine-prove with every tuning constant drawn from its range, and faults to be planted, in target/shaken/release
	$(checked) -p peregrine-prove --features shaken,broken

shaken-plugin: mariadb ## the plug-in with every tuning constant drawn from its range, in target/shaken/plugin
	$(checked) -p peregrine-capi --features shaken
	$(MAKE) --no-print-directory -f mariadb/setup/plugin.mk out=target/shaken/plugin \
		engine=target/shaken/release/libperegrine_capi.a

statements: library shaken-plugin ## random statements and plans on servers with that plug-in (OPTIONS="--seed N --duration SECONDS")
	target/release/peregrine prove statements --plugin target/shaken/plugin/ha_peregrine.so $(OPTIONS)

broken-plugin: mariadb ## the plug-in in a build in which a rule or a step can be left out, in target/broken/plugin
	cargo build -q --release -p peregrine-capi --features broken --target-dir target/broken
	$(MAKE) --no-print-directory -f mariadb/setup/plugin.mk out=target/broken/plugin \
		engine=target/broken/release/libperegrine_capi.a

verify-shaken: library ## what shaking shows, a line a point: held or not, with its figure
	@verify/shaken

verify-answers: build ## what answers and rows promise, a line a point: held or not, with its figure
	@verify/answers

verify-house: build ## what a stranger finds in the code and its documents, a line a point: held or not, with its figure
	@verify/house

verify-differential: build ## what the server notices of the engine, a line a point: held or not, with its figure
	@verify/differential

verify-durability: build ## what durability promises, a line a point: held or not, with its figure
	@verify/durability

verify-reads: build ## what reads promise, a line a point: held or not, with its figure
	@verify/reads

verify-report: ## the latest report opened in Chromium: screenshots, nothing cut off or fetched, nothing that keeps people out
	@verify/report || [ $$? -eq 69 ]

verify-suite: build ## what the suite promises, a line a point: held or not, with its figure
	@verify/suite

verify-sanitizers: library mariadb ## tests under Miri and the sanitizers, with a nightly compiler (OPTIONS="miri|address|thread|plugin|server")
	@verify/sanitizers $(OPTIONS)

catch-broken: ## builds that leave out a rule of isolation: each must be caught by the checker of histories
	cargo test -p peregrine-prove --features broken --test histories -- --nocapture

catch-planted: ## builds with a fault of durability: each must be caught by power-loss, io-errors or disk-faults
	cargo test -p peregrine-prove --features broken --test planted -- --nocapture

clean: ## remove what was built; the private MariaDB stays
	cargo clean --release
	rm -rf target/plugin target/mtr target/broken target/shaken target/sanitizers target/book target/site

.PHONY: help bench knobs shaken shaken-command shaken-plugin broken-plugin statements schedules orders plans build library mariadb plugin test unit mtr compare sessions workloads engines-funcs lint format docs verify-flight verify-transactions verify-answers verify-differential verify-house verify-shaken verify-durability verify-reads verify-report verify-suite verify-sanitizers power-loss io-errors disk-faults catch-broken catch-planted clean bit-flips fuzz
