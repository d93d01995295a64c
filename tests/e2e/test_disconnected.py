"""A disconnected site from end to end, as the guide has it.

Everything was mirrored into the site's registry, which has a password and a CA of its own, and lies there under other
names. The management cluster reaches nothing else. Its administrator applies what mirroring wrote; from then on images
are named as at their source, and nobody says where they are any more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml
from tests.support.e2e import catalogs
from tests.support.e2e.control_planes import condition, guest_of
from tests.support.e2e.elsewhere import cut_off, registry_elsewhere
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.e2e.mirrored_site import Mirrored, mirrored, rules_in, tell
from tests.support.e2e.published_site import ended
from tests.support.eventually import eventually_sync
from tests.support.guides.shell import Shell
from tests.support.registry import Registry

from hcp import payload
from hcp.guest import olm
from hcp.local.network.addresses import REGISTRY
from hcp.local.state.layout import Layout

NAME, CLUSTER, RELEASE = "disconnected", "example", "1.36-full"
HOSTED = f"clusters-{CLUSTER}"

pytestmark = pytest.mark.timeout(5400)


@dataclass
class Site:
    cluster: Cluster
    registry: Registry
    brought: Mirrored
    shell: Shell

    def images(self, namespace: str) -> set[str]:
        pods = self.cluster.get("pods", "-n", namespace)["items"]
        return {
            one["image"] for pod in pods for one in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("disconnected")
    payload.ensure([f"release-{RELEASE}"])
    with registry_elsewhere(folder) as registry:
        brought = asyncio.run(mirrored(registry, folder, RELEASE))
        hcp("local", "up", "--name", NAME, "--profile", "kubevirt", "--with", "mirrors")
        try:
            cut_off(NAME)
            cluster = Cluster(NAME, folder)
            shell = Shell(folder, cluster.kubectl_binary, cluster.kubeconfig)
            (folder / "ca.pem").write_bytes(registry.ca_pem)
            yield Site(cluster, registry, brought, shell)
        finally:
            hcp("local", "down", "--name", NAME, "--purge")


@pytest.fixture(scope="module")
def guest(site: Site) -> Guest:
    """The cluster of the guide's command, with one node."""
    shell, brought = site.shell, site.brought
    (shell.folder / "mirrors.yaml").write_text(yaml.safe_dump(brought.rules()))
    shell.run(
        f"hcp create cluster kubevirt --name {CLUSTER} --node-pool-replicas 1 --pull-secret $PULL_SECRET"
        " --memory 3Gi --cores 2 --root-volume-size 16 --etcd-storage-class=local-path"
        f" --release-image {brought.release} --image-content-sources mirrors.yaml"
        " --additional-trust-bundle ca.pem --control-plane-availability-policy SingleReplica"
    )
    try:
        shell.run(f"hcp wait cluster {CLUSTER} --timeout 40m", seconds=2500)
    except AssertionError as error:
        seen = site.cluster.kubectl("get", "hostedcluster,pods,vmi,dv,events", "-A")[-6000:]
        raise AssertionError(f"{error}\n{seen}") from error
    return guest_of(site.cluster, shell.folder, CLUSTER)


def test_what_mirroring_wrote_reaches_the_nodes_runtime(site: Site) -> None:
    found = [site.brought.results / "imageContentSourcePolicy.yaml"]
    found += [site.brought.resources / f"{kind}-oc-mirror.yaml" for kind in ("idms", "itms")]
    tell(site.shell, site.registry, NAME, found)


def test_the_operator_runs_under_the_name_it_had_at_its_source(site: Site) -> None:
    words = ("--image", site.brought.operator, "--default-release-image", site.brought.release)
    site.shell.run(f"hcp install {' '.join(words)} --pull-secret $PULL_SECRET --wait-until-available", seconds=900)
    assert {image.partition("/")[0] for image in site.images("hypershift")} == {site.brought.source}


def test_an_image_by_its_tag_is_found_at_the_mirror(site: Site) -> None:
    sources = [rule["source"] for rule in rules_in(site.brought.resources / "itms-oc-mirror.yaml")]
    assert site.brought.by_tag.rpartition(":")[0] in sources
    assert ended(site.cluster, site.brought.by_tag) == "Succeeded"


def test_a_hosted_cluster_with_a_node_comes_up(site: Site, guest: Guest) -> None:
    assert len(guest.ready_nodes()) == 1
    here = f"{site.brought.source}/team/hcp"
    # KubeVirt and CDI were there before, from the registry inside the embedded cluster.
    ours = {image for image in site.images(HOSTED) if not image.startswith(f"{REGISTRY}/")}
    assert {image.rpartition("/")[0] for image in ours} == {here}
    pods = guest.get("pods", "-A")["items"]
    images = {one["image"] for pod in pods for one in pod["spec"]["containers"]}
    assert {image.rpartition("/")[0] for image in images} == {here}


def test_every_part_of_a_full_release_is_well(site: Site, guest: Guest) -> None:
    parts = {one["metadata"]["name"]: one["status"]["conditions"] for one in guest.get("co")["items"]}
    assert {"ingress", "storage"} <= set(parts)
    for name, found in parts.items():
        assert {one["type"]: one["status"] for one in found}["Available"] == "True", name
    assert condition(site.cluster, CLUSTER, "StorageAvailable")["status"] == "True"
    spaces = {one["metadata"]["name"] for one in guest.get("namespaces")["items"]}
    assert olm.NAMESPACE not in spaces, "nothing of OLM runs without a catalog"


def test_the_node_ports_of_the_default_ingress_are_told(site: Site, guest: Guest) -> None:
    site.shell.run(f"hcp create kubeconfig --name {CLUSTER} > {CLUSTER}-kubeconfig")
    for name in ("http", "https"):
        port = site.shell.run(
            f"oc --kubeconfig {CLUSTER}-kubeconfig get services -n openshift-ingress router-nodeport-default"
            f""" -o jsonpath='{{.spec.ports[?(@.name=="{name}")].nodePort}}'"""
        )
        assert 30000 <= int(port) < 32768


def test_the_graph_that_was_mirrored_tells_of_updates(site: Site, guest: Guest) -> None:
    (service,) = yaml.safe_load_all((site.brought.resources / "updateService.yaml").read_text())
    spec = {"channel": "candidate-1.36", "updateService": f"docker://{service['spec']['graphDataImage']}"}
    patch = json.dumps({"spec": spec})
    site.shell.run(f"oc -n clusters patch hostedcluster {CLUSTER} --type merge -p '{patch}'")
    told = "condition=ClusterVersionRetrievedUpdates"
    site.shell.run(f"oc -n clusters wait hostedcluster {CLUSTER} --for={told} --timeout=600s", seconds=620)


def test_an_operator_out_of_the_mirrored_catalog_is_installed(site: Site, guest: Guest) -> None:
    try:
        catalogs.install(guest, site.brought.resources)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{catalogs.told(guest)}") from error


def test_mirror_sets_that_are_taken_away_are_followed_no_more(site: Site, guest: Guest) -> None:
    site.shell.run(f"oc delete -f {site.brought.results}/imageContentSourcePolicy.yaml")
    for name in ("idms-oc-mirror.yaml", "itms-oc-mirror.yaml"):
        site.shell.run(f"oc delete -f {site.brought.resources}/{name}")
    place = Layout.of(NAME).etc / "certs.d" / site.brought.source
    eventually_sync(lambda: not place.exists(), "containerd knows no mirrors any more", 120)
