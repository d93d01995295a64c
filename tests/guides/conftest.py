"""What the guides start from: a management cluster with the operator on it, a terminal, and the guides' `example`.

HCP_E2E_KUBECONFIG takes a running management cluster instead of an embedded one of its own, HCP_E2E_NAMESPACE another
namespace for hosted clusters, HCP_E2E_WORKERS another number of nodes, HCP_E2E_CLUSTER a hosted cluster that is there
already (the steps about its volumes then need one that was made like `example`). Tests that need none of it start none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.guides.clusters import SIZE, Given, Hosted, embedded
from tests.support.guides.shell import Shell

NAME = "guides"


@pytest.fixture(scope="session")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    given = os.environ.get("HCP_E2E_KUBECONFIG")
    if given:
        yield Given(Path(given))
        return
    with embedded(NAME, tmp_path_factory.mktemp("management")) as cluster:
        hcp("install", "--kubeconfig", str(cluster.kubeconfig), "--wait-until-available")
        yield cluster


@pytest.fixture(scope="session")
def terminal(management: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("terminal"), management.kubectl_binary, management.kubeconfig)


@pytest.fixture(scope="session")
def clusters_namespace() -> str:
    return os.environ.get("HCP_E2E_NAMESPACE", "clusters")


@pytest.fixture(scope="session")
def example(management: Cluster, terminal: Shell, clusters_namespace: str) -> Iterator[Hosted]:
    """The cluster most steps look at, made with the options that several guides show one by one."""
    made = Hosted(
        os.environ.get("HCP_E2E_CLUSTER", "example"), clusters_namespace, int(os.environ.get("HCP_E2E_WORKERS", "2"))
    )
    if "HCP_E2E_CLUSTER" in os.environ:
        yield made
        return
    storage = terminal.run(
        "oc get sc -o jsonpath='{.items[?(@.metadata.annotations.storageclass\\.kubernetes\\.io/is-default-class"
        '=="true")].metadata.name}\''
    ).split()[0]
    try:
        terminal.run(
            f"hypershift create cluster kubevirt {made.words} --node-pool-replicas={made.workers}"
            f" --pull-secret $PULL_SECRET {SIZE} --etcd-storage-class={storage}"
            f" --root-volume-storage-class {storage} --root-volume-cache-strategy=PVC"
        )
        yield made
    finally:
        terminal.run(f"hcp destroy cluster kubevirt {made.words} --cluster-grace-period 15m", seconds=1000)


@pytest.fixture(scope="session")
def guest(management: Cluster, terminal: Shell, example: Hosted) -> Guest:
    """The hosted cluster from inside, with all its nodes."""
    terminal.run(f"hcp wait cluster {example.name} --namespace {example.namespace} --timeout 30m", seconds=1900)
    path = terminal.folder / "guest.kubeconfig"
    path.write_text(terminal.run(f"hcp create kubeconfig {example.words}"))
    found = Guest(management, path)
    assert len(found.ready_nodes()) >= example.workers
    return found
