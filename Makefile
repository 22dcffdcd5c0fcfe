# One command per need, the same for a person and for CI.
# Every target makes what it lacks, names Debian packages before it installs them, and asks nothing.
PYTHON ?= python3
BIN := .venv/bin
# Most tests wait for servers rather than for a core; each worker has servers of its own.
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help venv local demo test e2e bench soak lint type fmt generate verify verify-engines clean

help:  ## Show the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-15s %s\n", $$1, $$2}'

.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(PYTHON) -m e2e.cluster packages python
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

venv: .venv/.installed  ## Make the virtual environment with pinned packages.

demo: venv  ## Bring a cluster up, install the chart, and watch a cache at work.
	@$(BIN)/python -m e2e.demo </dev/null

local: venv  ## Serve examples/quickstart.yaml on this machine, without a cluster.
	@$(BIN)/cachewright local -f examples/quickstart.yaml

test: venv  ## Run the unit, store, gateway, local, chart and API tests.
	$(PYTHON) -m e2e.cluster packages api stores
	$(PYTHON) -m e2e.cluster tools etcd kube-apiserver kubectl helm >/dev/null
	$(BIN)/pytest tests -n $(WORKERS) --dist loadfile </dev/null

e2e: venv  ## Run the tests on a real node.
	$(PYTHON) -m e2e.installation
	$(BIN)/pytest e2e </dev/null

bench: venv  ## Measure the gateway beside LiteLLM, and write docs/benchmarks.md.
	$(PYTHON) -m e2e.cluster packages stores bench
	@$(BIN)/python -m bench </dev/null
	@$(BIN)/python -m bench.reclaim </dev/null
	@$(BIN)/python -m bench.semantic </dev/null
	@$(BIN)/python -m bench.vectors </dev/null
	@$(BIN)/python -m bench.questions </dev/null
	@$(BIN)/python -m bench.prefix </dev/null

FUZZED := tests/adversarial/test_fuzz.py tests/unit/test_keys_canonical.py tests/unit/test_policy_sse.py tests/unit/test_rotation_model.py tests/stores/test_interleavings.py

soak: venv  ## Send 200,000 mixed requests while everything around the gateway fails, then fuzz.
	$(PYTHON) -m e2e.cluster packages stores
	@$(BIN)/python -m bench.soak </dev/null
	$(BIN)/pytest --hypothesis-profile=soak --timeout=1800 $(FUZZED) </dev/null

lint: venv  ## Check style, formatting and the import contracts.
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/lint-imports

type: venv  ## Check types.
	$(BIN)/mypy

fmt: venv  ## Format the code and mend what can be mended.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: venv  ## Write the CRD, the chart's CRD and README, and docs/api.md from their sources.
	$(BIN)/python -m cachewright.crd write
	$(BIN)/python charts/readme.py write

verify: venv  ## Fail when a generated file differs from its source.
	$(BIN)/python -m cachewright.crd check
	$(BIN)/python charts/readme.py check

verify-engines: venv  ## Let the parsers of vLLM and SGLang read every argument we render (installs 16 GB).
	$(BIN)/python -m e2e.parsers </dev/null

clean: venv  ## Remove the test cluster and the virtual environment; the cache of built tools stays.
	$(PYTHON) -m e2e.cluster down --all
	rm -rf .venv
