"""The guide's steps with catalogs, on a management cluster with OLM that reaches nothing but the mirror."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import operators
from tests.support.e2e.catalogs import SOURCE, install, mirrored, mirrors, ready, told
from tests.support.e2e.elsewhere import cut_off, registry_elsewhere
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.eventually import eventually_sync
from tests.support.guides.shell import Shell
from tests.support.registry import Registry

from hcp.local.state.layout import Layout

NAME = "catalogs"

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Cluster, Registry]]:
    (tmp_path / "registry").mkdir()
    with registry_elsewhere(tmp_path / "registry") as registry:
        hcp("local", "up", "--name", NAME, "--profile", "cluster", "--with", "olm")
        try:
            yield Cluster(NAME, tmp_path), registry
        finally:
            hcp("local", "down", "--name", NAME, "--purge")


def follow(resources: Path, registry: Registry, folder: Path) -> None:
    """As the owner of plain nodes does: containerd is told of the mirror of each source, and of its login."""
    authority = folder / "mirror-ca.pem"
    authority.write_bytes(registry.ca_pem)
    login = base64.b64encode("{username}:{password}".format(**registry.login).encode()).decode()
    places = {registry.host: ""}
    for one in mirrors(resources):
        host, _, path = one["source"].partition("/")
        (mirror,) = one["mirrors"]
        places[host] = mirror.removesuffix(f"/{path}").removeprefix(registry.host)
    for host, prefix in places.items():
        url = f"https://{registry.host}/v2{prefix}"
        place = Layout.of(NAME).etc / "certs.d" / host
        place.mkdir(exist_ok=True)
        (place / "hosts.toml").write_text(
            f'server = "https://{host}"\n\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'
            f'  override_path = true\n  ca = "{authority}"\n'
            f'  [host."{url}".header]\n    authorization = "Basic {login}"\n'
        )


async def test_catalog_sources_are_applied_and_packages_listed(site: tuple[Cluster, Registry], tmp_path: Path) -> None:
    cluster, registry = site
    resources = await mirrored(registry, tmp_path)
    follow(resources, registry, tmp_path)
    cut_off(NAME)
    shell = Shell(tmp_path, cluster.kubectl_binary, cluster.kubeconfig)
    (results,) = (tmp_path / "oc-mirror-workspace").iterdir()
    try:
        shell.run(f"oc apply -f oc-mirror-workspace/{results.name}/catalogSource-cs-hello-index.yaml")
        eventually_sync(lambda: ready(cluster, SOURCE), "the catalog answers", 1500)
        line = f"oc get packagemanifest -n openshift-marketplace | grep {operators.PACKAGE}"
        eventually_sync(lambda: shell.run(line), "its package", 1200)
        # The other folder has the same source, and an operator can be installed from it.
        install(cluster, resources)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{told(cluster)}") from error
