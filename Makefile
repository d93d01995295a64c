# Everything a person or a CI machine runs. Each target installs what it needs.
SHELL := /bin/bash
PYTHON ?= python3
# Files are UTF-8 whatever the locale says.
export PYTHONUTF8 := 1
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# kubectl of the payload, next to hcp, as soon as it is built.
LINK_KUBECTL := $(BIN)/python -c 'from hcp import payload; p = payload.find("kubernetes-1.36"); p and print(p / "bin" / "kubectl")' \
	| xargs -r -I{} ln -sf {} $(BIN)/kubectl

# Tests that follow HyperShift's guides lie together, whatever they need to run.
GUIDES = $(foreach name,$(1),tests/guides/test_guide_$(name).py)

.PHONY: install demo test test-unit test-integration test-odd test-security test-smoke test-e2e test-fresh conformance \
	fidelity lint clean clean-all

install: $(STAMP)
	@$(LINK_KUBECTL)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	touch $@

# Official builds are taken where their publishers can be reached; BUILD=1 builds all from source. NODES=0 stops at the
# control plane.
demo: install
	$(BIN)/hcp demo --nodes $(or $(NODES),2) $(if $(BUILD),--build)
	@$(LINK_KUBECTL)

test: lint test-unit test-integration test-security test-smoke

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-unit: install
	$(BIN)/pytest -q tests/unit $(call GUIDES,commands inventory)

# A real etcd and kube-apiserver; built first where they are missing.
test-integration: install
	$(BIN)/hcp payload build etcd kubernetes-1.36 registry haproxy test-shells >/dev/null
	@$(LINK_KUBECTL)
	$(BIN)/pytest -q tests/integration $(call GUIDES,yaml isolation)

# Attacks, one file per way up, that need no virtual machine; those that do are below tests/e2e/security.
test-security: install
	$(BIN)/hcp payload build etcd kubernetes-1.36 registry haproxy cluster-api cluster-api-kubevirt >/dev/null
	@$(LINK_KUBECTL)
	$(BIN)/pytest -q tests/security

# The whole way once, with real virtual machines. Needs root.
test-smoke: install
	$(BIN)/pytest -q -x tests/e2e/test_smoke.py

# Every end-to-end path; takes long.
test-e2e: install
	$(BIN)/pytest -q tests/e2e $(call GUIDES,create manage ingress external_infra)

# The README's commands in a minimal Debian; COLD=1: with an empty cache; STEPS="install unit": only these. Needs root.
test-fresh: install
	$(BIN)/python -m tests.fresh.run

# HyperShift's own schema test cases against our definitions, on a real API server; fetches its source (16 MB). Needs Go.
fidelity: install
	$(BIN)/pytest -q tests/fidelity

# Unit tests and some others where nothing is as usual: path, locale, umask, proxy, load; TESTS and LOAD: tests/odd/run.py
test-odd: install
	$(BIN)/python -m tests.odd.run

# Specs of the Kubernetes project against a hosted cluster; FOCUS, NAME, CLUSTER, KUBECONFIG, KEEP: docs/conformance.md
conformance: install
	$(BIN)/python -m conformance.run

# Everything that make and the tools left in this folder; the cache of built parts stays.
clean:
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m hcp.local.lifecycle.using $(VENV); fi
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist demo src/*.egg-info
	find src tests bench conformance -name __pycache__ -prune -exec rm -rf {} +
	@cache="$${XDG_CACHE_HOME:-$$HOME/.cache}/hcp"; if [ -d "$$cache" ]; then \
		echo "What was built stays in $$cache ($$(du -sh "$$cache" | cut -f1)); make clean-all frees it"; fi

# The cache too: the next demo builds everything again.
clean-all: install
	$(BIN)/python -m hcp payload clean --all
	$(MAKE) clean
