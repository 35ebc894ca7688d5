# Every target sets up what it needs in .venv; a fresh machine needs Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: run test test-all soak lint docs benchmark clean

run: $(VENV)/.run-ready
	@$(BIN)/gainful run quickstart
	@$(BIN)/gainful report results/quickstart > /dev/null

test: lint
	@$(BIN)/python -m pytest -n auto -m "not slow"

test-all: $(VENV)/.test-ready
	@$(BIN)/python -m pytest -n auto -m slow

soak: $(VENV)/.test-ready
	@GAINFUL_KILLS=200 $(BIN)/python -m pytest -q tests/experiments/test_crashes.py tests/live/test_crashes.py tests/experiments/test_dask.py tests/serve/test_kills.py

lint: $(VENV)/.test-ready
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: $(VENV)/.test-ready
	@$(BIN)/sphinx-build -W -q -b html docs docs/_build
	@echo "docs/_build/index.html"

benchmark: $(VENV)/.test-ready
	@$(PIP) install -e ".[benchmarks]"
	@for name in planning planning_cost learning replanning continuous experiments report audit tightness live serve; do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py || exit 1; done

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "gainful needs Python 3.11 or newer; say make PYTHON=python3.12")'
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run-ready: $(VENV)/bin/python pyproject.toml
	@echo "installing gainful into $(VENV) (once)"
	@$(PIP) install -e .
	@touch $@

$(VENV)/.test-ready: $(VENV)/bin/python pyproject.toml
	@echo "installing gainful and its development tools into $(VENV) (once)"
	@$(PIP) install -e ".[dev]"
	@touch $@ $(VENV)/.run-ready

clean:
	rm -rf $(VENV) .cache build dist docs/_build
