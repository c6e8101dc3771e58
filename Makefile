# The two commands: `make demo` shows everything, `make test` proves it. Both set up .venv themselves.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

# Played over HTTP in processes of their own, which the fast loop leaves out.
SERVED := tests/journey tests/cli tests/browser

NOTEBOOKS := $(BIN)/pytest --nbmake --nbmake-timeout 300 notebooks

.PHONY: demo test check bench record lab clean

demo: $(INSTALLED)
	@$(BIN)/gamelens demo

test: check
	@$(BIN)/pytest --dist loadfile -n 2 -m slow $(addprefix --ignore ,$(SERVED))
	@$(BIN)/pytest --dist loadfile -n 2 $(SERVED)
	@$(NOTEBOOKS) -n 2 --dist worksteal
	@GAMELENS_REPLAY=$(CURDIR)/data/recorded $(NOTEBOOKS) -n 2 --dist worksteal

check: $(INSTALLED)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo > .cache/imports.txt 2>&1 || { cat .cache/imports.txt; exit 1; }
	@$(BIN)/pytest --dist loadfile -n 2 -m "not slow" $(addprefix --ignore ,$(SERVED))

bench: $(INSTALLED)
	@$(BIN)/pytest -s tests/bench
	@KILLS=500 $(BIN)/pytest tests/journey/test_kill.py

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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
