# The two commands of the README, and what the developers use. Each sets up its
# own environment in .venv from nothing but Python >= 3.11 (PYTHON=... to choose one).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := requirements-dev.lock
# What the tests run on has versions and hashes; `make test LOCK=` takes what is newest instead.
# torch has a version only: its builds for a CPU and for GPUs differ (docs/dependencies.md).
TORCH  := $(shell sed -n 's/.*"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
PYTEST  = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal  # a worker is a core
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-fast lint reproduce pictures docs bench clean dist lock test-lowest test-newest coverage mutation sbom

demo: $(VENV)/.base  ## Jura end to end: the table and a figure of maps
	$(BIN)/emgpr demo

test: lint           ## linters, types, layers, and every test and docstring
	$(PYTEST)

test-fast: lint      ## linters, types and the quick tests: the fast lane
	$(PYTEST) -m "not slow" tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

reproduce: $(VENV)/.base  ## the paper's Jura table and figures, in results/jura
	$(BIN)/emgpr reproduce jura

pictures: $(VENV)/.base  ## the images of docs/pictures.md, by the code on that page
	$(BIN)/python docs/pictures.py

docs: $(VENV)/.dev   ## the pages, gallery and reference as a site: build/docs/index.html
	rm -rf build/docs build/site && mkdir -p build/site
	cp -R docs benchmarks build/site  # what Sphinx generates stays out of the sources
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -d build/site/doctrees build/site/docs build/docs

# make bench ONLY=jura METHODS="emgpr GPy" LIMIT=120, or QUICK=1 for a look at two problems, once
bench: $(VENV)/.geo  ## against the peers that install, on one core: rows, then docs/benchmarks.md
	$(BIN)/python -m benchmarks.run $(if $(ONLY),--only $(ONLY)) $(if $(METHODS),--methods $(METHODS)) \
		$(if $(LIMIT),--limit $(LIMIT)) $(if $(QUICK),--quick)
	$(BIN)/python -m benchmarks.table $(if $(QUICK),--quick,--docs)

# Outside CI: minutes each, an environment of its own in build/ for what is not the lock's.

test-lowest: build/lowest/.tests  ## the tests on the lowest versions that pyproject.toml declares
	OMP_NUM_THREADS=1 build/lowest/bin/python -m pytest -n auto --dist worksteal \
		-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning  # of old versions, by newer ones

test-newest:         ## linters, types and tests on the newest versions there are
	$(MAKE) test VENV=build/newest LOCK=

coverage: $(VENV)/.dev  ## branches of src/ that the tests take; fails under 97%
	$(PYTEST) --cov --cov-report=term --cov-report=html:build/coverage/html

# make mutation SAMPLE=200 SEED=1, ONLY=covariance: how many changes to the code the tests notice
mutation: build/mutation/.made
	OMP_NUM_THREADS=1 build/mutation/bin/python -m tools.mutation --sample $(or $(SAMPLE),150) --seed $(or $(SEED),0) $(ONLY)

dist: build/tools/.made  ## sdist and wheel in dist/, checked, and the wheel tried in an empty environment
	rm -rf dist build/wheel
	build/tools/bin/python -m build --quiet --outdir dist .
	build/tools/bin/python -m twine check --strict dist/*
	$(call new-venv,build/wheel)
	build/wheel/bin/python -m pip install --quiet dist/*.whl
	cd build/wheel && bin/emgpr demo --out demo

lock: build/tools/.made  ## requirements-dev.lock anew: every file's hash, any platform, Python >= 3.11
	build/tools/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
		--generate-hashes --no-emit-package torch --no-annotate \
		--custom-compile-command 'make lock' --all-extras --group dev pyproject.toml --output-file $(LOCK)

sbom: build/tools/.made  ## build/sbom.json: what `pip install emgpr` brings, as CycloneDX
	$(call new-venv,build/base)
	build/base/bin/python -m pip install --quiet --upgrade .
	build/tools/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library \
		--output-reproducible --of JSON --output-file build/sbom.json build/base/bin/python

# $(call new-venv,FOLDER)
new-venv = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "emgpr needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")' && $(PYTHON) -m venv $(1)

$(VENV)/.base: pyproject.toml
	$(call new-venv,$(VENV))
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.geo: $(VENV)/.base  # to read ATMS granules, where there are any
	$(BIN)/python -m pip install --quiet --editable '.[geo]'
	touch $@

$(VENV)/.dev: pyproject.toml $(LOCK)
	$(call new-venv,$(VENV))
ifneq ($(LOCK),)
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
else
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[all]' --group dev
endif
	touch $@

build/mutation/.made: pyproject.toml
	$(call new-venv,build/mutation)
	build/mutation/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/mutation/bin/python -m pip install --quiet --editable '.[all]' --group mutation
	touch $@

build/lowest/.tests: pyproject.toml
	$(call new-venv,build/lowest)
	build/lowest/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/lowest/bin/python tools/lowest.py > build/lowest/versions.txt
	build/lowest/bin/python -m pip install --quiet --editable '.[all]' --group test --constraint build/lowest/versions.txt
	touch $@

build/tools/.made:
	$(call new-venv,build/tools)
	build/tools/bin/python -m pip install --quiet uv cyclonedx-bom build twine
	touch $@

clean:
	rm -rf $(VENV) .bench build mutants dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
