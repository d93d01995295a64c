# Everything a person or a CI machine runs. Each target installs what it needs; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
# Files are UTF-8 whatever the locale says.
export PYTHONUTF8 := 1
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
# kubectl of the payload, next to hcp, as soon as it is built.
LINK_KUBECTL := $(BIN)/python -c 'from hcp import payload; p = payload.find("kubernetes-1.36"); p and print(p / "bin" / "kubectl")' \
	| xargs -r -I{} ln -sf {} $(BIN)/kubectl

# Where the definitions of other projects' kinds come from.
DEFINITIONS := cluster-api cluster-api-kubevirt kubevirt-definitions cdi-definitions openshift-definitions mirror-definitions
# Files of tests that wait for servers more than they compute run a few at a time, and one after the other (0) where
# others keep the machine busy already: many want to run right now. The load of the last minute would tell of builds that
# are over.
JOBS ?= $(shell awk '{print $$4 + 0 < 10 ? 3 : 0}' /proc/loadavg)
SIDE_BY_SIDE = -n $(JOBS) --dist loadfile
# What failed runs once more, alone: who passes then is named as flaky, and is a defect.
SECOND_CHANCE = $(BIN)/python -m tools.second_chance
SLOWEST = --durations=15 --durations-min=5
# Tests that follow HyperShift's guides lie together, whatever they need to run.
GUIDES = $(foreach name,$(1),tests/guides/test_guide_$(name).py)

.PHONY: help install demo test test-unit test-integration test-odd test-security test-smoke test-e2e chaos test-platform test-storage test-catalogs test-login \
	test-network test-gateway test-monitoring test-autoscaling test-fresh test-hosts conformance conformance-gateway fidelity lint format docs wheel clean clean-all

help:  ## This list
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(STAMP)  ## .venv with hcp, hypershift and the pinned tools of developers
	@$(LINK_KUBECTL)

$(STAMP): pyproject.toml setup.py src/hcp/csi/wire/protocols.toml src/hcp/csi/wire/generate.py
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]'
	touch $@

# Official builds are taken where their publishers can be reached; BUILD=1 builds all from source. NODES=0 stops at the
# control plane.
demo: install  ## A management cluster on this machine, the operator on it, a hosted cluster with two nodes (NODES=0, BUILD=1)
	$(BIN)/hcp demo --nodes $(or $(NODES),2) $(if $(BUILD),--build)
	@$(LINK_KUBECTL)

test: lint test-unit test-integration test-security test-smoke  ## What must be green before anything lands; needs root

lint: install  ## Style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install  ## Bring the source into the house's form
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

test-unit: install  ## Pure tests, seconds
	$(BIN)/pytest -q tests/unit $(call GUIDES,commands inventory)

test-integration: install  ## Tests on a real etcd and kube-apiserver, built first where they are missing
	$(BIN)/hcp payload build etcd kubernetes-1.36 registry haproxy containerd image-pause test-shells test-proxy test-curl test-ext4 node-tools hosted-secrets \
		$(DEFINITIONS) >/dev/null
	@$(LINK_KUBECTL)
	$(SECOND_CHANCE) integration -q $(SLOWEST) $(SIDE_BY_SIDE) tests/integration $(call GUIDES,yaml isolation mirror)

# One file per way up; those that need virtual machines are below tests/e2e/security.
test-security: install  ## Attacks that need no virtual machine
	$(BIN)/hcp payload build etcd kubernetes-1.36 registry haproxy $(DEFINITIONS) >/dev/null
	@$(LINK_KUBECTL)
	$(SECOND_CHANCE) security -q $(SLOWEST) $(SIDE_BY_SIDE) tests/security

test-smoke: install  ## The whole way once, with real virtual machines; needs root
	$(BIN)/pytest -q -x tests/e2e/test_smoke.py

test-e2e: install  ## Every end-to-end path; takes long, needs root
	$(BIN)/hcp payload build csi-sidecars >/dev/null
	$(BIN)/pytest -q tests/e2e $(call GUIDES,create manage ingress external_infra catalogs)

# FAULTS, SEED, NAME, MACHINES, KEEP: docs/chaos.md
chaos: install  ## Kills, stops, partitions and fills while hosted control planes come and go, then counts; needs root
	$(BIN)/python -u -m tests.chaos.run --name=$(or $(NAME),chaos) --faults=$(or $(FAULTS),200) $(if $(SEED),--seed=$(SEED)) $(if $(MACHINES),--machines=$(MACHINES)) $(if $(KEEP),--keep)

# Prometheus, dex and oc are compiled first, which takes half an hour.
test-platform: install  ## Ingress, logins, oc, a browser, monitoring and a base domain on two machines; needs root
	$(BIN)/hcp payload build release-1.36-platform release-1.36-ingress oc test-browser test-curl >/dev/null
	$(BIN)/pytest -q -s tests/e2e/test_platform.py

# The tests of drivers are compiled first, which takes a few minutes.
test-storage: install  ## The Kubernetes project's tests of storage drivers against that of the embedded cluster; needs root
	$(BIN)/hcp payload build csi-sanity node-tools >/dev/null
	$(BIN)/pytest -q -s tests/storage

# OLM and opm are compiled first, which takes some minutes.
test-catalogs: install  ## operator-lifecycle-manager and opm themselves on a real API server, with mirrored catalogs
	$(BIN)/hcp payload build olm olm-definitions etcd kubernetes-1.36 registry >/dev/null
	$(BIN)/pytest -q tests/catalogs

test-gateway: install  ## Gateways: the real definitions on a real API server, a real HAProxy
	$(BIN)/hcp payload build etcd kubernetes-1.36 haproxy gateway-definitions >/dev/null
	$(BIN)/pytest -q tests/gateway

# dex and the programs that log in (oc, kubelogin) are compiled first, which takes some twenty minutes.
test-login: install  ## The OAuth server of hosted clusters itself, with a real API server that believes it, slapd, oc and kubelogin
	$(BIN)/hcp payload build dex oc kubelogin test-slapd test-browser etcd kubernetes-1.36 registry $(DEFINITIONS) >/dev/null
	$(BIN)/pytest -q tests/login

test-network: install  ## NetworkPolicies with packets: kube-router itself between network namespaces; needs root
	$(BIN)/hcp payload build image-kube-router etcd kubernetes-1.36 >/dev/null
	$(BIN)/pytest -q tests/network

# They are compiled first, which takes some minutes.
test-monitoring: install  ## Prometheus, kube-state-metrics and node-exporter of hosted clusters themselves, on a real API server
	$(BIN)/hcp payload build prometheus node-exporter metrics-server etcd kubernetes-1.36 registry $(DEFINITIONS) >/dev/null
	$(BIN)/pytest -q -s tests/monitoring

# It is compiled first, which takes some minutes.
test-autoscaling: install  ## cluster-autoscaler of hosted clusters itself, between two real API servers, with a real scheduler
	$(BIN)/hcp payload build cluster-autoscaler etcd kubernetes-1.36 $(DEFINITIONS) >/dev/null
	$(BIN)/pytest -q -s tests/autoscaling

test-fresh: install  ## The README's commands in a minimal Debian (COLD=1: empty cache; STEPS="install unit"); needs root
	$(BIN)/python -m tests.fresh.run

# HOSTS, VARIANTS, MEMORY, KEEP: docs/embedded-hosts.md. Most of an hour for each machine, on emulated processors.
test-hosts: install  ## hcp local up in Debian and Ubuntu themselves, virtual machines with cgroup v2 and systemd; needs root
	$(BIN)/hcp payload build rootfs-virt image-hcp release-1.36 >/dev/null
	$(BIN)/python -u -m tests.hosts.run

# Fetches the source of HyperShift (16 MB). Needs Go.
fidelity: install  ## HyperShift's own schema test cases against our definitions, on a real API server
	$(BIN)/pytest -q tests/fidelity

# TESTS and LOAD: tests/odd/run.py
test-odd: install  ## Tests where nothing is as usual: path, locale, umask, proxy, load
	$(BIN)/python -m tests.odd.run

# FOCUS, SKIP, NAME, CLUSTER, KUBECONFIG, KEEP, RESUME: docs/conformance.md
conformance: install  ## Specs of the Kubernetes project against a hosted cluster
	$(BIN)/python -m conformance.run

# FOCUS, NAME, KUBECONFIG, KEEP: docs/conformance.md
conformance-gateway: install  ## The Gateway API project's conformance tests against the router of hosted clusters; needs root
	$(BIN)/python -m conformance.gateway

$(DOCS_STAMP): $(STAMP)
	$(PIP) -e '.[docs]'
	touch $@

docs: install $(DOCS_STAMP)  ## The documentation as a site in build/site; fails on a warning or a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs --quiet build --strict
	$(BIN)/python -m tools.docs.check build/site

# Nothing of a former build may get into it.
wheel: install  ## A wheel in dist/
	rm -rf build/lib build/bdist.* dist
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean:  ## Remove everything that make and the tools left in this folder; the cache of built parts stays
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m hcp.local.lifecycle.in_use $(VENV); fi
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist demo src/*.egg-info \
		src/hcp/csi/wire/*_pb2.py*
	find src tests bench conformance tools -name __pycache__ -prune -exec rm -rf {} +
	@cache="$${XDG_CACHE_HOME:-$$HOME/.cache}/hcp"; if [ -d "$$cache" ]; then \
		echo "What was built stays in $$cache ($$(du -sh "$$cache" | cut -f1)); make clean-all frees it"; fi

clean-all: install  ## Also empty the cache of built parts: the next demo builds everything again
	$(BIN)/python -m hcp payload clean --all
	$(MAKE) clean
