# The two commands: `make demo` shows everything, `make test` proves it. Both set up .venv themselves.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

# Played over HTTP in processes of their own, which the fast loop leaves out.
SERVED := tests/journey tests/cli tests/browser

NOTEBOOKS := $(BIN)/pytest --nbmake --nbmake-timeout 300 notebooks

# Without nbmake, which takes every process 1.5 s to import.
TESTS := $(BIN)/pytest -p no:nbmake --dist loadfile

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Installers take nothing whose hash is not in the file. The oldest Python is the oldest that every pin supports.
LOCK := .cache/lock/bin/uv pip compile --quiet --universal --python-version 3.11.5 --no-python-downloads \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header

AUDIT := $(BIN)/pip-audit --no-deps --disable-pip --progress-spinner off --timeout 3 --requirement

# Modules and tests are compiled once, also where the environment says otherwise: hundreds of processes import them.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/bytecode

.PHONY: demo test check static audit constraints coverage bench record lab clean

demo: $(INSTALLED)
	@$(BIN)/gamelens demo

test: static
	@$(TESTS) --no-loadscope-reorder -n 4
	@$(NOTEBOOKS) -n 2 --dist worksteal
	@GAMELENS_REPLAY=$(CURDIR)/data/recorded $(NOTEBOOKS) -n 2 --dist worksteal

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
	@$(LOCK) $(UPGRADE) pyproject.toml --extra dev --group build --output-file constraints.txt
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
	@KILLS=500 $(BIN)/pytest tests/journey/test_repeated_crashes.py tests/sandbox/test_killed_runs.py

# What the notebooks ask, asked of a sandbox and written down.
record: $(INSTALLED)
	@rm -rf data/recorded
	@GAMELENS_RECORD=$(CURDIR)/data/recorded $(NOTEBOOKS)
	@rm -rf data/outside
	@$(BIN)/python data/make_outside.py

lab: $(INSTALLED)
	@$(BIN)/gamelens lab

clean:
	rm -rf .venv .cache reports .pytest_cache .mypy_cache .ruff_cache

$(INSTALLED): pyproject.toml constraints.txt
	@mkdir -p .cache
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) --require-hashes --requirement constraints.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
