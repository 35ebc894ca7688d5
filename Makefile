# Every target sets up what it needs in .venv; a fresh machine needs Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PARALLEL = -n $(shell $(BIN)/python -c "import os; print((os.cpu_count() or 1) + 1)") --dist loadfile
FLOOR_TESTS := tests/test_rng.py tests/mdp tests/agents/test_scal_plus.py tests/simulation/test_tabular.py \
  tests/experiments/test_store.py tests/live/test_agent.py tests/cli/test_solve.py tests/cli/test_learn.py tests/plot/test_curves.py
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: run test quick test-all floors soak lint docs notebooks dist benchmark measure tables studies clean

run: $(VENV)/.run-ready
	@$(BIN)/gainful run quickstart
	@$(BIN)/gainful report results/quickstart > /dev/null

# Checks and tests side by side. One worker more than there are cores, as some tests wait for other processes; a file's tests
# stay with one worker, so that no kernel is compiled twice.
test: $(VENV)/.test-ready
	@$(MAKE) --no-print-directory -j2 lint quick

# Asserts are not rewritten, which takes a fifth of a worker's start; what fails runs again with all details.
quick: $(VENV)/.test-ready
	@$(BIN)/python -m pytest $(PARALLEL) -m "not slow" --assert=plain || { \
	  echo "what failed, once more and in detail:"; $(BIN)/python -m pytest -n 0 -m "not slow" --last-failed; exit 1; }

test-all: $(VENV)/.test-all-ready
	@$(BIN)/python -m pytest $(PARALLEL) -m slow
	@$(MAKE) --no-print-directory floors

# The lowest versions that pyproject.toml allows of every direct dependency, in an environment of their own.
floors: $(VENV)/.test-ready
	@echo "testing the lowest allowed versions of all dependencies"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-floors
	@$(BIN)/uv pip install --quiet --python .venv-floors/bin/python --resolution lowest-direct -e ".[parquet,figures,serve]"
	@$(BIN)/uv pip install --quiet --python .venv-floors/bin/python "pytest>=8" "pytest-xdist>=3.5" "hypothesis>=6.100" "httpx>=0.27"
	@.venv-floors/bin/python -m pytest $(PARALLEL) -m "not slow" $(FLOOR_TESTS)

# The flips take about half an hour of CPU, half of it for durable agents: one kind of folder for each worker.
soak: $(VENV)/.test-ready
	@GAINFUL_FLIPS=all $(BIN)/python -m pytest -v -rP -n auto --dist load -m "not slow" tests/test_flipped_bits.py
	@GAINFUL_CUTS=1000 $(BIN)/python -m pytest -q -s tests/power_cuts
	@GAINFUL_PROBLEMS=20000 $(BIN)/python -m pytest -q -s tests/planning/test_float64_edge.py
	@GAINFUL_KILLS=200 $(BIN)/python -m pytest -q tests/experiments/test_crashes.py tests/live/test_crashes.py tests/experiments/test_dask.py
	@GAINFUL_KILLS=1000 $(BIN)/python -m pytest -q -s tests/serve/test_kills.py
	@GAINFUL_MUTANTS=all $(BIN)/python -m pytest -q tests/audit/test_mutations.py
	@GAINFUL_REQUESTS=10000 $(BIN)/python -m pytest -q -s tests/serve/test_schemathesis.py

lint: $(VENV)/.test-ready
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: $(VENV)/.test-ready
	@$(BIN)/sphinx-build -W -q -b html docs docs/_build
	@echo "docs/_build/index.html"

# Execute the tutorial and the course, and store what they print and draw.
notebooks: $(VENV)/.test-ready
	@$(BIN)/python docs/notebooks.py

# The source archive and the wheel; with TAG=v1.2.3 only if the version, the changelog and the citation agree with it.
dist: $(VENV)/.test-ready
	@$(if $(TAG),$(BIN)/python .ci/check_release.py $(TAG))
	@rm -rf dist
	@$(BIN)/uv build --quiet --out-dir dist
	@ls dist

benchmark: $(VENV)/.test-ready
	@$(PIP) install -e ".[benchmarks]"
	@for name in planning planning_cost building learning replanning continuous experiments report audit tightness live serve; do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py || exit 1; done

# Measure again the times that the docs' tables show, keep them in benchmarks/measured, and make the tables from them. What
# was measured on a quieter machine is kept; BUSY=--even-if-busy replaces it. The tables of regret take longer: each has its
# command below it.
measure: $(VENV)/.test-ready
	@$(PIP) install -e ".[benchmarks]"
	@for name in planning learning replanning continuous planning_cost experiments report audit serve; do \
	  echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py --record $(BUSY) || exit 1; done
	@$(BIN)/python benchmarks/psrl_priors.py --record
	@$(BIN)/python benchmarks/tables.py

tables: $(VENV)/.test-ready
	@$(BIN)/python benchmarks/tables.py

# The claims of the paper: runs, pictures and pages of docs/claims. What is stored is not made again.
studies: $(VENV)/.test-ready
	@$(BIN)/python -m studies $(STUDY) $(if $(JOBS),--jobs $(JOBS)) $(if $(DEVICE),--device $(DEVICE))

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

# NVIDIA's compiler: an emulated GPU runs what it makes of kernels, where there is no GPU.
$(VENV)/.test-all-ready: $(VENV)/.test-ready
	@echo "installing the compiler for GPUs into $(VENV) (once)"
	@$(PIP) install -e ".[cuda-compiler]" && touch $@ || echo "it could not be installed: tests on the emulated GPU are skipped"

clean:
	rm -rf $(VENV) .venv-floors .cache build dist docs/_build
