# The two commands of the README, and what the developers use. Each sets up its
# own environment in .venv from nothing but Python >= 3.11 (PYTHON=... to choose one).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint reproduce pictures bench clean

demo: $(VENV)/.base  ## Jura end to end: the table and a figure of maps
	$(BIN)/emgpr demo

test: lint           ## linters, types, layers, and every test and docstring
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal  # a worker is a core

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reproduce: $(VENV)/.base  ## the paper's Jura table and figures, in results/jura
	$(BIN)/emgpr reproduce jura

pictures: $(VENV)/.base  ## the images of docs/pictures.md, by the code on that page
	$(BIN)/python docs/pictures.py

# make bench ONLY=jura METHODS="emgpr GPy" LIMIT=120, or QUICK=1 for a look at two problems, once
bench: $(VENV)/.geo  ## against the peers that install, on one core: rows, then docs/benchmarks.md
	$(BIN)/python -m benchmarks.run $(if $(ONLY),--only $(ONLY)) $(if $(METHODS),--methods $(METHODS)) \
		$(if $(LIMIT),--limit $(LIMIT)) $(if $(QUICK),--quick)
	$(BIN)/python -m benchmarks.table $(if $(QUICK),--quick,--docs)

$(VENV)/.base: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "emgpr needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.geo: $(VENV)/.base  # to read ATMS granules, where there are any
	$(BIN)/python -m pip install --quiet --editable '.[geo]'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	touch $@

clean:
	rm -rf $(VENV) .bench build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
