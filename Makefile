# One command per need, the same for a person and for CI. Every target makes what it lacks.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help venv demo test e2e lint type fmt generate verify clean

help:  ## Show the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

venv: $(VENV)/.installed  ## Make the virtual environment with pinned packages.

lint: venv  ## Check style, formatting and the import contracts.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

type: venv  ## Check types.
	$(BIN)/mypy

fmt: venv  ## Format the code and mend what can be mended.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: venv  ## Write the CRD, the chart's CRD and docs/api.md from the models.
	$(BIN)/python -m cachewright.crd write

verify: venv  ## Fail when a generated file differs from the models.
	$(BIN)/python -m cachewright.crd check
