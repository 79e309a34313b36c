# Two commands do all the set-up: `make run` shows Triplewire at work, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Some images ask Python to keep no bytecode: then each of the hundreds of processes that tests start compiles all modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run test quick explore unit fuzz fuzz-http lint lock clean

setup: $(STAMP)

# The stamp is younger than the lock file, so a second run installs nothing.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Triplewire needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@echo "compiling the matching code and caching Java's classes: a minute, once"
	@$(BIN)/triplewire precompile
	@touch $@

run: $(STAMP)
	$(BIN)/triplewire up --demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Clients from npm that some tests let listen; where they cannot be had those are skipped.
NODES := tests/http/dialects/node_modules/.package-lock.json
$(NODES): tests/http/dialects/package-lock.json
	@npm ci --prefix tests/http/dialects --ignore-scripts --no-audit --no-fund --silent \
	  || echo "no packages from npm: tests with them are skipped"

.PHONY: nodes
nodes: $(NODES)

# The W3C's SPARQL suites, out of rdflib's source distribution; offline their tests are skipped, and the summary says so.
SUITES := .w3c/.unpacked
$(SUITES): tests/conformance/suites.txt | $(STAMP)
	@$(BIN)/python -m tests.conformance.suites .w3c || echo "no W3C suites: their tests are skipped"

.PHONY: w3c
w3c: $(SUITES)

PYTEST := TRIPLEWIRE_N3=$(CURDIR)/tests/http/dialects $(BIN)/pytest -q

# The tests that need no other process, without the slow ones: while you work.
quick: $(STAMP)
	$(PYTEST) -n auto -m "not slow and not spark and not processes"

# The tests that start no process but their own, spread over the cores, and one worker more: some tests wait.
unit: $(STAMP)
	$(PYTEST) -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --durations=10 -m "not spark and not processes"

# Types are checked beside the unit tests, as by themselves they leave cores idle.
test:
	$(MAKE) -j 2 nodes w3c
	$(MAKE) -j 2 lint unit
	$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder --durations=10 -m "spark or processes"

# Generated tests with new examples, ten times as many; the seed is printed, `make explore SEED=7` repeats it.
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
explore: $(STAMP)
	@echo "seed $(SEED)"
	TRIPLEWIRE_SEED=$(SEED) $(PYTEST) -n auto --hypothesis-profile=explore --hypothesis-seed=$(SEED) -m "generated and not spark and not processes"

# Ten minutes of requests that are made from the OpenAPI document; `make fuzz-http SECONDS=60` for less.
SECONDS ?= 600
fuzz-http: $(STAMP)
	$(BIN)/python -m tests.http.openapi.fuzzing --seconds $(SECONDS)

# Codecs, queries, filters and policies with atheris, a minute each; `make fuzz FUZZ_SECONDS=600 TARGETS="sparql turtle"`.
FUZZ_SECONDS ?= 60
TARGETS ?=
fuzz: $(STAMP)
	$(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) $(TARGETS)

lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-header -o requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
