# The two commands: `make demo` shows everything, `make test` proves it. Both set up .venv themselves.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
COMPILED := .cache/bytecode/compiled

NOTEBOOKS := $(BIN)/pytest --nbmake --nbmake-timeout 300 notebooks

# What `make check-lowest` and `make check-newest` install and run: not the tools, which are pinned.
LIBRARY_EXTRAS := excel keyring lab polars sandbox tls
LIBRARY_TOOLS := hypothesis jsonschema mmdb-writer openpyxl pytest pytest-xdist pyyaml
LIBRARY_TESTS := tests/analysis tests/catalog tests/client tests/contract tests/errors tests/receipts tests/simulator tests/wire

# Without nbmake, which takes every process 1.5 s to import.
TESTS := $(BIN)/pytest -p no:nbmake --dist loadfile

# Built and installed things, which .ci/run proves: make check-wheel, make check-docs.
BUILT := tests/journey/test_wheel.py tests/browser/test_site.py

# Copies of the source that are changed and tested, and scripts of users in mypy: make check-copies.
COPIES := tests/house/test_recipes.py tests/house/test_public_types.py tests/house/test_static_gates.py

# All else in one run, which writes down what each test took. Four workers, since many tests wait for a process or a turn.
WHOLE := $(BIN)/python -m pytest -p tests.support.lean_start --nbmake --nbmake-timeout 300 --dist loadfile \
	--no-loadscope-reorder -n 4 $(addprefix --ignore ,$(BUILT) $(COPIES)) --junit-xml .cache/tests.xml notebooks tests

# Tests over random worlds: one in `make test`, tens of them in `make bench`.
RANDOM_WORLDS := sql_planner metrics_against_brute_force batch_builder verification openapi_conformance

PIP := python -m pip install --quiet --disable-pip-version-check

LINT := $(BIN)/ruff check --quiet && $(BIN)/ruff format --check --quiet

# Installers take nothing whose hash is not in the file. The oldest Python is the oldest that every pin supports.
UV := .cache/lock/bin/uv
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11.5 --no-python-downloads \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header

# All but Spark, which lies apart.
PINNED_EXTRAS := delta excel keyring lab mcp notify polars remote sandbox tls

AUDIT := $(BIN)/pip-audit --no-deps --disable-pip --progress-spinner off --timeout 3 --requirement

# Modules and tests are compiled once, also where the environment says otherwise: hundreds of processes import them.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/bytecode

# Workers have all processors busy already: the threads of a matrix product would wait for each other, and burn while they do.
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test test-wide durations seconds check static audit constraints coverage bench mutants engines record lab docs dist words methods \
	check-copies check-recipes check-lowest check-newest check-wheel check-docs clean

demo: $(INSTALLED)
	@$(BIN)/gamelens demo

# Types, layers and dependencies are proved by `make check`, and by .ci/run, not here: they would take half a minute more.
test: $(COMPILED)
	@$(LINT)
	@$(WHOLE)

# That recipes name all that they break, and that users' scripts have types.
check-copies: $(INSTALLED)
	@$(TESTS) -n 2 $(COPIES)

# That every fast test passes where all recipes were followed: five minutes and more.
check-recipes: $(INSTALLED)
	@$(TESTS) -n 0 -m wide tests/house/test_recipes.py

# All cases of what `make test` shows by a few: front ends, sizes, themes, worlds, vendors, layouts, engines, kill points; each word
# of the reports on recorded answers; how often intervals and alarms are right; the notebooks from a sandbox instead of a recording.
test-wide: $(INSTALLED)
	@LIVE_NOTEBOOKS=yes $(NOTEBOOKS)
	@$(TESTS) -n 2 -m wide $(addprefix --ignore ,$(BUILT) $(COPIES)) tests

# What `make test` took last, by folder, and its slowest tests.
durations:
	@$(BIN)/python tests/support/durations.py .cache/tests.xml

# What each module of tests took in the last `make test`, kept in the tree for a `make check` without one.
seconds: $(INSTALLED)
	@PYTHONPATH=tests $(BIN)/python -m support.changed_tests --keep .cache/tests.xml

# Every text that a user can meet, with file and line, to be read from top to bottom.
words: $(INSTALLED)
	@$(BIN)/python tests/support/words.py

# The tests nearest to what changed, as many as a minute holds, with fewer examples; make check ALL=yes runs all that are near,
# make check ROOM=client those of one room. The last line says what was left out.
check: $(INSTALLED)
	@$(LINT)
	@$(MAKE) --no-print-directory static audit > .cache/static.txt 2>&1 & static=$$!; tests=0; \
	if ! PYTHONPATH=tests $(BIN)/python -m support.changed_tests $(ROOM) $(if $(ALL),--all) > .cache/chosen.txt 2> .cache/left_out.txt; \
	then kill $$static; cat .cache/left_out.txt; exit 1; \
	elif [ -s .cache/chosen.txt ]; then $(TESTS) --no-loadscope-reorder -n 2 -m "not slow and not wide" --hypothesis-profile quick \
		$$(cat .cache/chosen.txt) || [ $$? = 5 ] || tests=1; fi; \
	wait $$static || tests=1; cat .cache/static.txt .cache/left_out.txt; exit $$tests

# Types, layers and dependencies.
static: $(INSTALLED)
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
constraints: $(UV)
	@$(LOCK) $(UPGRADE) pyproject.toml $(addprefix --extra ,$(PINNED_EXTRAS)) --group dev --group build --output-file constraints.txt
	@printf 'uv\n' | $(LOCK) $(UPGRADE) - --output-file .ci/constraints-uv.txt
	@printf 'pyspark\npy4j\ngrpcio\ngrpcio-status\ngoogleapis-common-protos\nzstandard\n' | $(LOCK) $(UPGRADE) --no-emit-package typing-extensions - \
		--output-file .ci/constraints-spark.txt
	@printf 'google-cloud-bigquery\nzetasql\nmoto[s3]\nflask\nflask-cors\ns3fs\ngcsfs\ngcp-storage-emulator\n' | $(LOCK) $(UPGRADE) - \
		--output-file .ci/constraints-engines.txt

# Lines and branches of src that the whole suite runs, also in the processes it starts. Limits of time may not hold while
# every line is counted, so a test that fails is shown and does not end it: `make test` is the judge of that.
coverage: $(INSTALLED)
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	-@$(BIN)/coverage run -m pytest -p no:nbmake --dist loadfile --no-loadscope-reorder -n 4 -m ""
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: $(INSTALLED)
	@$(BIN)/pytest -s tests/bench
	@$(TESTS) -n 2 --hypothesis-profile many -m hypothesis
	@$(TESTS) -n 2 --hypothesis-profile long -m "" $(addprefix tests/sandbox/test_,$(addsuffix .py,$(RANDOM_WORLDS)))
	@KILLS=500 $(BIN)/pytest -m "" tests/journey/test_repeated_crashes.py tests/sandbox/test_killed_runs.py tests/sandbox/test_raw_events.py

# Ten faults in each room, planted one at a time, which its tests must notice: make mutants ROOM=client
mutants: $(INSTALLED)
	@$(BIN)/python tests/support/mutants.py $(ROOM)

# Which analyses of events are equal on which engine, for the table of the documentation. .ci/run installs the engines.
engines: $(INSTALLED)
	@rm -f docs/engines.json
	@ENGINES=$(CURDIR)/docs/engines.json PYTHONPATH=.cache/spark $(TESTS) -m "" tests/raw_events/test_open_events.py \
		tests/sandbox/test_spark_events.py -k "every_analysis"
	@ENGINES=$(CURDIR)/docs/engines.json PYTHONPATH=.cache/engines $(TESTS) tests/raw_events/test_bigquery_events.py \
		-k "every_analysis_equals or own_warehouse"

# What the notebooks ask, asked of a sandbox and written down.
record: $(INSTALLED)
	@rm -rf data/recorded
	@GAMELENS_RECORD=$(CURDIR)/data/recorded $(NOTEBOOKS)
	@rm -rf data/outside
	@$(BIN)/python data/make_outside.py
	@$(BIN)/python -m docs.build --record

# Figures of the statistical methods, and what becomes of them with each constant a fifth smaller and larger, for the pages on
# methods: an hour. One constant: make methods CONSTANT=MEMORY_NOISE. The figures of one method: make methods METHOD=experiments
methods: $(INSTALLED)
	@$(if $(CONSTANT),,PYTHONPATH=tests:. $(BIN)/python -m support.method_figures $(METHOD))
	@$(if $(METHOD),,PYTHONPATH=tests:. $(BIN)/python -m support.changed_constants $(CONSTANT))

# The documentation site, from `docs`, the notebooks, the READMEs and the docstrings; open site/index.html.
docs: $(INSTALLED)
	@$(BIN)/python -m docs.build

# Wheel and source distribution, with the tools that are pinned.
dist: $(INSTALLED)
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/twine check --strict dist/*

# The oldest versions that pyproject.toml allows, in an environment of their own, on the fast tests of the library.
check-lowest: PYTHON_OF := $(PYTHON)
check-lowest: RESOLUTION := lowest-direct
check-lowest: $(UV)
	@$(LIBRARY_CHECK)

# The newest versions that pyproject.toml allows, on the newest Python that it names and that is there. One of pyenv is named
# by its path, since the command that pyenv has for it fails where another version is chosen.
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
check-newest: PYTHON_OF = $(firstword $(foreach minor,14 13,$(wildcard $(PYENV)/3.$(minor).*/bin/python) \
	$(shell $(UV) python find --quiet --no-python-downloads 3.$(minor) 2> /dev/null)))
check-newest: RESOLUTION := highest
check-newest: $(UV)
	@if [ -n "$(PYTHON_OF)" ]; then $(PYTHON_OF) --version; $(LIBRARY_CHECK); \
	else echo "check-newest skipped: there is no Python 3.13 or 3.14"; fi

# Without --upgrade uv would keep the versions that its output file has from the run before.
define LIBRARY_CHECK
$(UV) venv --quiet --clear --no-python-downloads --python $(PYTHON_OF) .cache/$@ && \
$(UV) pip compile --quiet --python .cache/$@/bin/python --upgrade --resolution $(RESOLUTION) --no-annotate --no-header \
	--no-emit-index-url $(addprefix --extra ,$(LIBRARY_EXTRAS)) pyproject.toml --output-file .cache/$@.txt && \
$(UV) pip install --quiet --python .cache/$@/bin/python --requirement .cache/$@.txt hatchling editables $(LIBRARY_TOOLS) && \
$(UV) pip install --quiet --python .cache/$@/bin/python --no-deps --no-build-isolation --editable . && \
.cache/$@/bin/pytest -p no:cacheprovider -n 2 --dist loadfile --hypothesis-profile quick -m "not slow and not wide" $(LIBRARY_TESTS)
endef

# The wheel, installed outside the checkout, where it runs the demo.
check-wheel: $(INSTALLED)
	@$(TESTS) tests/journey/test_wheel.py

# The documentation site, built as `make docs` builds it, every page opened in a browser.
check-docs: $(INSTALLED)
	@$(TESTS) tests/browser/test_site.py

lab: $(INSTALLED)
	@$(BIN)/gamelens lab

clean:
	rm -rf .venv .cache dist reports site .pytest_cache .mypy_cache .ruff_cache

$(INSTALLED): pyproject.toml constraints.txt
	@mkdir -p .cache
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(MAKE) --no-print-directory $(UV) 2> /dev/null || echo "uv cannot be had: installing with pip, which takes minutes"
	@echo "Installing $$(grep -c '^[a-z]' constraints.txt) packages into .venv, once"
	@if [ -x $(UV) ]; then $(UV) pip install --quiet --python $(BIN)/python --require-hashes --requirement constraints.txt; \
	else $(BIN)/$(PIP) --require-hashes --requirement constraints.txt; fi
	@if [ -x $(UV) ]; then $(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .; \
	else $(BIN)/$(PIP) --no-deps --no-build-isolation --editable .; fi
	@touch $@

# On a fresh machine, what tests import is compiled by two processes, before every worker would compile all of it.
COLLECT := $(BIN)/python -m pytest -p tests.support.lean_start -p no:cacheprovider -n 0 --collect-only -qq
$(COMPILED): $(INSTALLED)
	@mkdir -p $(@D)
	@$(COLLECT) tests/analysis tests/client tests/sandbox > .cache/compiled.txt 2>&1 & \
	$(COLLECT) --nbmake notebooks $(filter-out %/analysis %/bench %/client %/sandbox %/support,$(wildcard tests/[a-z]*)) \
		> .cache/compiled_too.txt 2>&1; wait $$!; touch $@

# An installer that takes seconds where pip takes minutes, with the same hashes. It is no package of the environment.
$(UV): .ci/constraints-uv.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/$(PIP) --upgrade --target .cache/lock --require-hashes --requirement .ci/constraints-uv.txt
	@touch $@
