"""Workers on another cluster than the control plane, with no more rights there than the guide grants.

HCP_E2E_INFRA_KUBECONFIG takes a running infra cluster instead of an embedded one of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync
from tests.support.guides import documents
from tests.support.guides.clusters import SIZE, Given, Hosted, embedded
from tests.support.guides.shell import Shell

pytestmark = pytest.mark.timeout(5400)
NAMESPACE = "clusters-remote"


@pytest.fixture(scope="module")
def infra(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    given = os.environ.get("HCP_E2E_INFRA_KUBECONFIG")
    if given:
        yield Given(Path(given))
        return
    with embedded("guides-infra", tmp_path_factory.mktemp("infra")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def infra_kubeconfig(infra: Cluster, terminal: Shell) -> Iterator[Path]:
    """What the owner of the infra cluster hands over: a ServiceAccount with the guide's rights and nothing more."""
    kubectl = infra.kubectl
    kubectl("create", "namespace", NAMESPACE)
    try:
        grants = (
            documents.infra_role(NAMESPACE),
            documents.network_reader(),
            documents.network_reader_binding(NAMESPACE),
        )
        infra.apply(*grants)
        kubectl("-n", NAMESPACE, "create", "serviceaccount", documents.ACCOUNT)
        account = f"{NAMESPACE}:{documents.ACCOUNT}"
        role = f"--role={documents.ROLE}"
        kubectl("-n", NAMESPACE, "create", "rolebinding", "machines", role, f"--serviceaccount={account}")
        config = yaml.safe_load(infra.kubeconfig.read_text())
        token = kubectl("-n", NAMESPACE, "create", "token", documents.ACCOUNT, "--duration=24h").strip()
        config["users"][0]["user"] = {"token": token}
        path = terminal.folder / "external-infra-kubeconfig"
        path.write_text(yaml.safe_dump(config))
        yield path
    finally:
        kubectl("delete", "namespace", NAMESPACE, seconds=300)
        kubectl("delete", "clusterrolebinding", f"{documents.READER}-binding")
        kubectl("delete", "clusterrole", documents.READER)


def test_machines_run_there_and_the_control_plane_here(
    management: Cluster, infra: Cluster, infra_kubeconfig: Path, terminal: Shell, clusters_namespace: str
) -> None:
    made = Hosted("remote", clusters_namespace, 1)
    try:
        terminal.run(
            f"hcp create cluster kubevirt {made.words} --node-pool-replicas {made.workers} --pull-secret $PULL_SECRET"
            f" {SIZE} --infra-namespace={NAMESPACE} --infra-kubeconfig-file=$HOME/{infra_kubeconfig.name}"
        )
        terminal.run(f"hcp wait cluster {made.name} -n {made.namespace} --control-plane --timeout 10m", seconds=700)
        path = terminal.folder / "remote.kubeconfig"
        path.write_text(terminal.run(f"hcp create kubeconfig {made.words}"))
        guest = Guest(management, path)
        eventually_sync(lambda: len(guest.ready_nodes()) == made.workers, "the node is ready", 1800)
        machines = [vm["metadata"]["name"] for vm in infra.get("vm", "-n", NAMESPACE)["items"]]
        assert machines == guest.ready_nodes()
        assert not management.get("vm", "-n", made.control_plane)["items"]
        assert not infra.get("statefulsets", "-n", NAMESPACE)["items"]
        policies = infra.get("networkpolicies", "-n", NAMESPACE)["items"]
        assert any("except" in str(policy["spec"]["egress"]) for policy in policies)
    finally:
        terminal.run(f"hcp destroy cluster kubevirt {made.words} --cluster-grace-period 20m", seconds=1300)
    assert not infra.get("vm,vmi,datavolumes,services,networkpolicies", "-n", NAMESPACE)["items"]
