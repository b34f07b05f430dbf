# One command a need: `make demo` shows Duly at work, `make test` proves it, `make check` reads the code.
# Every target sets up what it needs by itself; python3 (3.11 or newer, with venv) is all it asks for.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BENCH  := .venv-bench
MUTANT := .venv-mutants
AGENTS := tests/real_agents/node_modules/.ready
# Most tests ask a store something, and can ask it of both databases; the server is started by the tests themselves.
# With every proof PostgreSQL is asked what differs most by database: the guards, leases, places and losses of the store,
# who serves, and doctor. `make postgresql` asks the rest, and what one host's processes do. Tests of several hosts, of
# poolers, moves and upgrades and the storms over a server (tests/processes, tests/chaos) start one of their own and run
# always. Why some tests ask a file alone is said in tests/databases.py.
OWN     := $(addprefix tests/processes/test_process_,hosts.py pooler.py moving.py upgrades.py)
ON_BOTH := tests/store tests/holder tests/notify tests/events tests/cli tests/why tests/face
ON_BOTH += $(filter-out $(OWN),$(wildcard tests/processes/test_*.py))
GUARDED := $(addprefix tests/store/test_store_,guards.py leases.py places.py losses.py schema.py strangers.py)
GUARDED += $(addprefix tests/cli/test_cli_,doctor.py holding.py)

.PHONY: help demo test agents postgresql check bench chaos guards incidents sim mutants stress lock clean
.DEFAULT_GOAL := help

help:            ## say what each target does
	@sed -n 's/^\([a-z]*\): .*## /  make \1\t/p' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "duly needs Python 3.11 or newer: $$($(PYTHON) --version) found; try make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up, once (about half a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	@UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -q src
	@touch $@

demo: $(READY)   ## real commands at their times, for a minute
	@$(BIN)/duly demo

test: $(READY) check agents  ## every check and every test
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 4 --dist loadgroup
	@DULY_TEST_STORE=postgresql PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 4 --dist loadgroup $(GUARDED)

# Without npm, or on a machine that they are not made for, the tests of real agents are left out, and say so.
$(AGENTS): tests/real_agents/package-lock.json
	@if ! command -v npm >/dev/null; then echo "npm is not here: the tests of real agents will be skipped" >&2; \
	elif [ "$$(uname -sm)" != "Linux x86_64" ]; then echo "the tests of real agents want Linux on x86-64, and will be skipped" >&2; \
	else npm ci --prefix tests/real_agents --ignore-scripts --no-audit --no-fund --loglevel=error && touch $@; fi

agents: $(AGENTS)  ## install the real agents that the tests prompt (one, 177 MB)

postgresql: $(READY)  ## the tests of the store, holders, events, commands, why, the Python face and processes on a PostgreSQL server
	@DULY_TEST_STORE=postgresql PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 4 --dist loadgroup $(ON_BOTH)

check: $(READY)  ## types, style, floors of the house
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/lint-imports

$(BENCH)/.ready: $(READY) requirements-bench.lock
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	@UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip sync --quiet --compile-bytecode --python $(BENCH)/bin/python --require-hashes requirements-bench.lock
	@UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip install --quiet --python $(BENCH)/bin/python --no-deps --editable .
	@touch $@

bench: $(BENCH)/.ready  ## the figures of bench/, as ratios within one run (a quarter of an hour)
	@$(BENCH)/bin/python -m bench

lock: $(READY)   ## resolve the dependencies anew
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev --generate-hashes --no-header --no-annotate --output-file requirements.lock pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --group mutants --generate-hashes --no-header --no-annotate --output-file requirements-mutants.lock pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --group bench --generate-hashes --no-header --no-annotate --output-file requirements-bench.lock pyproject.toml

chaos: $(READY)  ## real processes in a storm of calamities, for ten minutes or DULY_CHAOS_SECONDS
	@DULY_CHAOS_SECONDS=$${DULY_CHAOS_SECONDS:-600} PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/chaos tests/processes/test_process_loops.py -m slow

guards: $(READY)  ## take away each guard of the promises in turn, and see the tests that turn red (an hour)
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/guards/without.py

$(MUTANT)/.ready: $(READY) requirements-mutants.lock
	@test -x $(MUTANT)/bin/python || $(PYTHON) -m venv $(MUTANT)
	@UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip sync --quiet --compile-bytecode --python $(MUTANT)/bin/python --require-hashes requirements-mutants.lock
	@touch $@

mutants: $(MUTANT)/.ready  ## change the core in small ways and see which changes its tests miss (MODULES="lateness limits", hours for all)
	@$(MUTANT)/bin/python tests/mutants/measure.py $(MODULES)

stress: $(READY)  ## the storms of chaos, and 10,000 short commands, a starved heart and full disks
	@DULY_CHAOS_SECONDS=$${DULY_CHAOS_SECONDS:-600} DULY_STRESS_COMMANDS=$${DULY_STRESS_COMMANDS:-10000} PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest tests/chaos

incidents: $(READY)  ## write docs/incidents.md anew from its table
	@$(BIN)/python tests/incidents/page.py

sim: $(READY)    ## many histories of a simulated world: SIM_SEEDS of them, or SEED=… alone; SIM_STORE=postgresql: of hosts on a server
	@$(BIN)/python $(if $(filter postgresql,$(SIM_STORE)),tests/testing/on_server.py,-m duly.testing) $(if $(SEED),--seed $(SEED),--seeds $(or $(SIM_SEEDS),2000))

clean:           ## remove what the targets made
	rm -rf $(VENV) $(BENCH) $(MUTANT) tests/real_agents/node_modules .mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
