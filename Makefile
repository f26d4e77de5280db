# Everything runs in .venv, which is created on first use and updated when the dependencies change.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two installations into one environment must not overlap.
.NOTPARALLEL:
.PHONY: help demo test test-fast test-lower-bounds test-extras coverage lint format docs bench clean

VENV := .venv
LOWER := .venv-lower-bounds
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq -c constraints.txt
# Two processes share the tests by file. Compiled test files halve the time until the first test, so they are kept.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2 --dist loadfile
PYTHONS := $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python)

# wisecrowd finds data only through these variables; they are set here if the folders exist.
ifneq ($(wildcard ../shared/data/.),)
export WISECROWD_DATA ?= $(CURDIR)/../shared/data
endif
ifneq ($(wildcard ../shared/answer_types/.),)
export WISECROWD_ANSWER_TYPES ?= $(CURDIR)/../shared/answer_types
endif
ifneq ($(wildcard ../shared/raw/.),)
export WISECROWD_RAW ?= $(CURDIR)/../shared/raw
endif

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile

demo: $(VENV)/installed-fast,report ## run wisecrowd on a simulated crowd
	@$(BIN)/wisecrowd demo

test: $(VENV)/installed-dev ## run all tests and examples; ARGS="-k crowd" selects some
	@$(PYTEST) $(ARGS)

test-fast: $(VENV)/installed-dev ## run the tests that need neither torch, Ray, a browser nor real data
	@$(PYTEST) --fast tests $(ARGS)

# Old versions of libraries use names that newer ones deprecate; those warnings are not ours.
test-lower-bounds: ## run the fast tests with the lowest versions that pyproject.toml allows, in an environment of their own
	@$(or $(PYTHON),python3.11) -m venv --clear $(LOWER)
	@$(LOWER)/bin/python .ci/lower_bounds.py > $(LOWER)/pins.txt
	@$(LOWER)/bin/python -m pip --disable-pip-version-check install -qq -r $(LOWER)/pins.txt -e . pytest pytest-timeout pytest-xdist hypothesis polars krippendorff
	@$(LOWER)/bin/python -m pytest -q -n 2 --fast tests -W ignore::DeprecationWarning -W ignore::FutureWarning $(ARGS)

test-extras: ## install the wheel into empty environments, with every extra by itself; ARGS="serve" selects some
	@$(or $(PYTHON),python3) .ci/install_extras.py $(ARGS)

coverage: $(VENV)/installed-dev ## run all tests and show the share of lines that they run
	@$(PYTEST) --cov=wisecrowd --cov-report=term:skip-covered $(ARGS)

lint: $(VENV)/installed-dev ## check style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/installed-dev ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/installed-docs ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

bench: $(VENV)/installed-dev ## measure speed
	@$(BIN)/python benchmarks/aggregate.py --quick

clean: ## remove everything that make created
	rm -rf $(VENV) $(LOWER) build dist site .hypothesis .mypy_cache .ruff_cache .import_linter_cache src/wisecrowd.egg-info wisecrowd-demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A pyenv shim may point to a missing Python, and a system Python may lack venv, so each candidate is tried.
$(VENV)/created:
	@for python in $(PYTHONS); do \
	    if "$$python" -c 'import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	        echo "Making $(VENV) with $$("$$python" --version)"; \
	        "$$python" -m venv --clear $(VENV) && touch $@; exit; \
	    fi; \
	done; \
	echo "wisecrowd needs Python 3.11 or newer with its venv module; tried: $(PYTHONS)." >&2; \
	echo "Install one (Debian, Ubuntu: apt install python3-venv), or name one: make PYTHON=/path/to/python" >&2; \
	exit 1

$(VENV)/installed-%: pyproject.toml constraints.txt $(VENV)/created
	@echo "Installing wisecrowd[$*] into $(VENV); once, a minute or two"
	@$(PIP) -e '.[$*]'
	@touch $@
