"""Workers on another cluster than the control plane, with no more rights there than the guide grants.

HCP_E2E_INFRA_KUBECONFIG takes a running infra cluster instead of an embedded one of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.e2e.hosted_tools import Guest, pushed
from tests.support.e2e.local_tools import Cluster
from tests.support.e2e.outside import Outside
from tests.support.eventually import eventually_sync
from tests.support.guides import documents
from tests.support.guides.clusters import SIZE, Given, Hosted, embedded
from tests.support.guides.shell import Shell

pytestmark = pytest.mark.timeout(5400)
NAMESPACE = "clusters-remote"
RELEASE = "release-1.36-ingress"


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


@pytest.fixture(scope="module")
def release(management: Cluster, infra: Cluster) -> str:
    """One with the default ingress, in both registries: machines there pull from theirs."""
    images = {pushed(one, RELEASE) for one in (infra, management) if one.name}
    return f" --release-image {images.pop()}" if images else ""


@pytest.fixture(scope="module")
def trust(infra: Cluster, terminal: Shell) -> str:
    """Whom machines believe about the registry beside them: each embedded cluster signs for its own."""
    if not infra.name:
        return ""
    signed = infra.get("configmap", "registry-ca", "-n", "openshift-config")["data"]
    (terminal.folder / "infra-registry.crt").write_text("".join(signed.values()))
    return " --additional-trust-bundle $HOME/infra-registry.crt"


@pytest.fixture(scope="module")
def remote(
    infra_kubeconfig: Path, terminal: Shell, release: str, trust: str, clusters_namespace: str
) -> Iterator[Hosted]:
    made = Hosted("remote", clusters_namespace, 1)
    try:
        terminal.run(
            f"hcp create cluster kubevirt {made.words} --node-pool-replicas {made.workers} --pull-secret $PULL_SECRET"
            f" {SIZE} --infra-namespace={NAMESPACE} --infra-kubeconfig-file=$HOME/{infra_kubeconfig.name}"
            f"{release}{trust}"
        )
        terminal.run(f"hcp wait cluster {made.name} -n {made.namespace} --control-plane --timeout 20m", seconds=1300)
        yield made
    finally:
        # The last test has destroyed it, if it came so far.
        terminal.run(_destroy(made), seconds=1500, check=False)


@pytest.fixture(scope="module")
def inside(management: Cluster, terminal: Shell, remote: Hosted) -> Guest:
    path = terminal.folder / "remote.kubeconfig"
    path.write_text(terminal.run(f"hcp create kubeconfig {remote.words}"))
    return Guest(management, path)


def _destroy(made: Hosted) -> str:
    return f"hcp destroy cluster kubevirt {made.words} --cluster-grace-period 20m"


def test_machines_run_there_and_the_control_plane_here(
    management: Cluster, infra: Cluster, remote: Hosted, inside: Guest
) -> None:
    eventually_sync(lambda: len(inside.ready_nodes()) == remote.workers, "the node is ready", 2400)
    machines = [vm["metadata"]["name"] for vm in infra.get("vm", "-n", NAMESPACE)["items"]]
    assert machines == inside.ready_nodes()
    assert not management.get("vm", "-n", remote.control_plane)["items"]
    assert not infra.get("statefulsets", "-n", NAMESPACE)["items"]
    policies = infra.get("networkpolicies", "-n", NAMESPACE)["items"]
    assert any("except" in str(policy["spec"]["egress"]) for policy in policies)


def test_names_below_the_infra_clusters_domain_lead_to_the_machines(
    management: Cluster, infra: Cluster, remote: Hosted, inside: Guest, release: str, tmp_path: Path
) -> None:
    if not release:
        pytest.skip("neither cluster is embedded: there is no registry to put a release with ingress into")
    there = infra.get("ingresses.config.openshift.io", "cluster")["spec"]["domain"]
    cluster = eventually_sync(lambda: _with_domain(management, remote), "a base domain", 600)
    assert cluster["spec"]["dns"]["baseDomain"] == there
    outside, trust = Outside(infra, tmp_path), tmp_path / "ca.crt"
    trust.write_text(management.get("configmap", "root-ca", "-n", remote.control_plane)["data"]["ca.crt"])
    url = f"https://canary-openshift-ingress-canary.apps.{remote.name}.{there}/"

    def answered() -> bool:
        return outside.curl(url, trust) == "Healthcheck requested\n200"

    eventually_sync(answered, "the canary through the infra cluster's router", 2400)


def _with_domain(management: Cluster, made: Hosted) -> Any:
    found = management.get("hostedcluster", made.name, "-n", made.namespace)
    return found if found["spec"].get("dns", {}).get("baseDomain") else None


def test_nothing_is_left_there(infra: Cluster, remote: Hosted, terminal: Shell) -> None:
    terminal.run(_destroy(remote), seconds=1500)
    kinds = "vm,vmi,datavolumes,services,routes,networkpolicies"
    assert not infra.get(kinds, "-n", NAMESPACE)["items"]
