# The two commands: `make demo` shows everything, `make test` proves it. Both set up .venv themselves.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

# Played over HTTP in processes of their own, which the fast loop leaves out.
SERVED := tests/journey tests/cli tests/browser

NOTEBOOKS := $(BIN)/pytest --nbmake --nbmake-timeout 300 notebooks

# What `make check-lowest` installs and runs: not the tools, which are pinned.
LOWEST_EXTRAS := excel keyring lab polars sandbox
LOWEST_TOOLS := hypothesis jsonschema mmdb-writer pytest pytest-xdist pyyaml
LOWEST_TESTS := tests/analysis tests/catalog tests/client tests/contract tests/errors tests/simulator tests/wire

# Without nbmake, which takes every process 1.5 s to import.
TESTS := $(BIN)/pytest -p no:nbmake --dist loadfile

# Tests over random worlds, of which `make bench` tries ten times as many.
RANDOM_WORLDS := table_sources metrics_against_brute_force batch_builder

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Installers take nothing whose hash is not in the file. The oldest Python is the oldest that every pin supports.
LOCK := .cache/lock/bin/uv pip compile --quiet --universal --python-version 3.11.5 --no-python-downloads \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header

# All but Spark, which lies apart.
PINNED_EXTRAS := delta excel keyring lab mcp notify polars remote sandbox

AUDIT := $(BIN)/pip-audit --no-deps --disable-pip --progress-spinner off --timeout 3 --requirement

# Modules and tests are compiled once, also where the environment says otherwise: hundreds of processes import them.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/bytecode

.PHONY: demo test check static audit constraints coverage bench record lab docs dist check-lowest clean

demo: $(INSTALLED)
	@$(BIN)/gamelens demo

test: static
	@$(TESTS) --no-loadscope-reorder -n 4
	@$(NOTEBOOKS) -n 2 --dist worksteal

# A fifth of the examples that `make test` tries.
check: static audit
	@$(TESTS) -n 3 -m "not slow" --hypothesis-profile quick $(addprefix --ignore ,$(SERVED))

static: $(INSTALLED)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo > .cache/imports.txt 2>&1 || { cat .cache/imports.txt; exit 1; }
	@$(BIN)/deptry src > .cache/dependencies.txt 2>&1 || { cat .cache/dependencies.txt; exit 1; }

# Known vulnerabilities of what is pinned, once a day. One package first: without an index of advisories there is no waiting.
audit: $(INSTALLED)
	@sed -n 's/^\(idna==[^ ]*\).*/\1/p' constraints.txt > .cache/audit.txt
	@if [ "$$(cat .cache/audited 2> /dev/null)" = "$$(date +%F) $$(cksum constraints.txt)" ]; then :; \
	elif timeout 10 $(AUDIT) .cache/audit.txt > .cache/audit.out 2>&1; grep -q "could not be audited" .cache/audit.out \
		|| ! grep -qi "known vulnerabilit" .cache/audit.out; then \
		echo "audit skipped: no index of advisories can be reached"; \
	else \
		$(AUDIT) constraints.txt && echo "$$(date +%F) $$(cksum constraints.txt)" > .cache/audited; \
	fi

# Pins and hashes anew from pyproject.toml, for all platforms. Pins stay where they can: UPGRADE=--upgrade renews all.
constraints:
	@$(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13'
	@$(LOCK) $(UPGRADE) pyproject.toml $(addprefix --extra ,$(PINNED_EXTRAS)) --group dev --group build --output-file constraints.txt
	@printf 'pyspark\npy4j\n' | $(LOCK) $(UPGRADE) - --output-file .ci/constraints-spark.txt

# Lines and branches of src that the whole suite runs, also in the processes it starts. Limits of time may not hold while
# every line is counted, so a test that fails is shown and does not end it: `make test` is the judge of that.
coverage: $(INSTALLED)
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	-@$(BIN)/coverage run -m pytest -p no:nbmake --dist loadfile --no-loadscope-reorder -n 4
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: $(INSTALLED)
	@$(BIN)/pytest -s tests/bench
	@$(TESTS) -n 2 --hypothesis-profile long $(addprefix tests/sandbox/test_,$(addsuffix .py,$(RANDOM_WORLDS)))
	@KILLS=500 $(BIN)/pytest tests/journey/test_repeated_crashes.py tests/sandbox/test_killed_runs.py

# What the notebooks ask, asked of a sandbox and written down.
record: $(INSTALLED)
	@rm -rf data/recorded
	@GAMELENS_RECORD=$(CURDIR)/data/recorded $(NOTEBOOKS)
	@rm -rf data/outside
	@$(BIN)/python data/make_outside.py
	@$(BIN)/python -m docs.build --record

# The documentation site, from `docs`, the notebooks, the READMEs and the docstrings; open site/index.html.
docs: $(INSTALLED)
	@$(BIN)/python -m docs.build

# Wheel and source distribution, with the tools that are pinned.
dist: $(INSTALLED)
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/twine check --strict dist/*

# The oldest versions that pyproject.toml allows, in an environment of their own, on the fast tests of the library.
check-lowest:
	@$(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13'
	@.cache/lock/bin/uv venv --quiet --clear --python $(PYTHON) .cache/lowest
	@.cache/lock/bin/uv pip compile --quiet --resolution lowest-direct --no-annotate --no-header --no-emit-index-url \
		$(addprefix --extra ,$(LOWEST_EXTRAS)) pyproject.toml --output-file .cache/lowest.txt
	@.cache/lock/bin/uv pip install --quiet --python .cache/lowest/bin/python --requirement .cache/lowest.txt \
		hatchling editables $(LOWEST_TOOLS)
	@.cache/lock/bin/uv pip install --quiet --python .cache/lowest/bin/python --no-deps --no-build-isolation --editable .
	@.cache/lowest/bin/pytest -p no:cacheprovider -n 2 --dist loadfile --hypothesis-profile quick -m "not slow" $(LOWEST_TESTS)

lab: $(INSTALLED)
	@$(BIN)/gamelens lab

clean:
	rm -rf .venv .cache dist reports site .pytest_cache .mypy_cache .ruff_cache

$(INSTALLED): pyproject.toml constraints.txt
	@mkdir -p .cache
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) --require-hashes --requirement constraints.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
