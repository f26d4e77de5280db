# Everything runs in .venv, which is made on first use and again when the dependencies change.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two installations into one environment must not overlap.
.NOTPARALLEL:
.PHONY: help demo test lint format docs bench clean

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq -c constraints.txt
PYTHONS := $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python)

# wisecrowd finds data through these variables alone; whoever has the folders here need not set them.
ifneq ($(wildcard ../shared/data/.),)
export WISECROWD_DATA ?= $(CURDIR)/../shared/data
endif
ifneq ($(wildcard ../shared/answer_types/.),)
export WISECROWD_ANSWER_TYPES ?= $(CURDIR)/../shared/answer_types
endif
ifneq ($(wildcard ../shared/raw/.),)
export WISECROWD_RAW ?= $(CURDIR)/../shared/raw
endif

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile

demo: $(VENV)/installed-fast,report ## see wisecrowd at work on a small crowd
	@$(BIN)/wisecrowd demo

test: $(VENV)/installed-dev ## run every test and every example; ARGS="-k crowd" narrows it
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup $(ARGS)

lint: $(VENV)/installed-dev ## style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/installed-dev ## put the code into shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/installed-docs ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

bench: $(VENV)/installed-dev ## measure speed, the short form
	@$(BIN)/python benchmarks/aggregate.py --quick

clean: ## remove everything that make made
	rm -rf $(VENV) build dist site .hypothesis .mypy_cache .ruff_cache .import_linter_cache src/wisecrowd.egg-info wisecrowd-demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A shim may exist for a Python that does not, and a system Python may lack venv: each is asked before it is chosen.
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
