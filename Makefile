# `make` lists the targets. Everything runs in .venv, which make sets up itself:
# all that is needed is Python 3.11 or later, and an index of packages.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CLI    := $(VENV)/.cli
READY  := $(VENV)/.ready
RIVALS := $(VENV)/.rivals
SPHINX := $(VENV)/.sphinx
OLDEST := .venv-oldest

# Directory of data archives, where there is one; `bisvm.datasets` does without.
ifndef BISVM_DATA
ifneq ($(wildcard ../shared/data/.),)
export BISVM_DATA := $(abspath ../shared/data)
endif
endif

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export MPLBACKEND ?= Agg

# Workers begin with halves of the suite and then take work from each other: fixtures of
# a module are set up once. Tests above two seconds are listed, to be marked `full`.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal --durations=20

# Small matrices: one BLAS thread in each of two processes beats two in one.
test test-full test-oldest same bench bench-full docs: export OMP_NUM_THREADS := 1
test test-full test-oldest same bench bench-full docs: export OPENBLAS_NUM_THREADS := 1
# Processes that tests start load the bytecode that others have written.
test test-full: export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test tests test-full test-oldest same lint format bench bench-full experiments docs clean

help: ## list the targets
	@echo "Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	    while IFS='|' read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done

install: $(CLI) ## the command line, and what it needs: .venv/bin/bisvm
	@echo "Next: $(CURDIR)/$(BIN)/bisvm tune TABLE --target COLUMN --report report.html"

demo: $(CLI) ## where it pays and where it does not; the report goes to demo-output/
	$(BIN)/python -m bisvm.cli.demo

# Types are checked meanwhile: mypy alone would leave a core idle.
test: $(READY) ## style, types, and all tests that are not long
	@$(MAKE) --no-print-directory -j 2 lint tests

tests:
	$(PYTEST) --durations-min=2

test-full: lint ## the long checks too
	$(PYTEST) --durations-min=60 -m ""

# Dask 2025.1 does not forget a closed client if the tests of a file are mixed.
test-oldest: $(OLDEST)/.ready ## the tests with the lowest versions; ONLY='tests/io' for some
	$(OLDEST)/bin/python -m pytest -q -n 2 --dist loadfile $(ONLY)

same: $(READY) ## answers of many small fits beside those on file; ONLY='kernel/*' for some
	$(BIN)/python -m tools.same $(if $(ONLY),--only '$(ONLY)')

lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## rewrite the code in the style of the project
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(RIVALS) ## what tuning costs, in a few minutes: prices, races, scaling, start-up
	$(BIN)/python -m benchmarks

bench-full: $(RIVALS) ## the same on every size and data set: hours; goes on where it was
	$(BIN)/python -m benchmarks --full

experiments: $(READY) ## published tables and figures of less than ten minutes each
	$(BIN)/python -m experiments --all --within 600

docs: $(SPHINX) ## the documentation, into docs/_build/html; every warning is an error
	$(BIN)/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html

clean: ## remove the environment, caches, the demo's picture and built documentation
	rm -rf $(VENV) $(OLDEST) build dist demo-output docs/_build docs/api docs/gallery .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CLI): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "bisvm needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up $(VENV) (once; a minute or two) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet -e '.[plots,files]'
	@touch $@

$(READY): $(CLI)
	@$(BIN)/python -m pip install --quiet -e '.[test,plots,files,images]'
	@touch $@

$(OLDEST)/.ready: pyproject.toml tools/oldest.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' || \
	    { echo "The lowest versions need Python 3.11 or 3.12: make PYTHON=python3.11 ..."; exit 1; }
	@echo "Setting up $(OLDEST) (once; a few minutes) ..."
	@$(PYTHON) -m venv --clear $(OLDEST)
	@$(PYTHON) -m tools.oldest > $(OLDEST)/pins.txt
	@$(OLDEST)/bin/python -m pip install --quiet -c $(OLDEST)/pins.txt -e '.[test,plots,files]'
	@touch $@

$(RIVALS): $(READY)
	@$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@

$(SPHINX): $(READY)
	@$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@
