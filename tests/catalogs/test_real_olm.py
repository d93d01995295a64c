"""operator-lifecycle-manager itself on a real API server, with a catalog that mirroring built and opm serves.

There are no nodes: what pods would do is done by processes here, and a kubelet's word that a Deployment is available is
given by the test. The server of packages wants to be in a pod; tests/guides/test_guide_catalogs.py has it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import crds as crds_support
from tests.support import operators
from tests.support.api_server import ApiServer, free_port
from tests.support.eventually import eventually
from tests.support.image_sets import Site, pusher
from tests.support.registry import Registry, start
from tests.support.unit.controlplane import IMAGES, params

from hcp import payload
from hcp.guest import olm
from hcp.guest.catalogs import GuestCatalogs
from hcp.guest.objects import GuestParams
from hcp.kube import Client, Resource, load_config
from hcp.kube import resources as k
from hcp.oci import RegistryClient

VERSIONS = Resource(olm.GROUP, "v1alpha1", "clusterserviceversions", "ClusterServiceVersion")
SUBSCRIPTIONS = Resource(olm.GROUP, "v1alpha1", "subscriptions", "Subscription")
CSV = f"{operators.PACKAGE}.v2.0.0"

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def programs() -> Path:
    return payload.ensure(["olm"])["olm"] / "bin"


@pytest.fixture(scope="module")
def definitions() -> list[dict[str, Any]]:
    folder = payload.ensure(["olm-definitions"])["olm-definitions"] / "manifests/crds"
    return [yaml.load(path.read_text(), Loader=yaml.CSafeLoader) for path in sorted(folder.glob("*.yaml"))]


@pytest.fixture
async def guest(
    tmp_path: Path, bin_dir: Path, definitions: list[dict[str, Any]], programs: Path
) -> AsyncIterator[tuple[Client, ApiServer]]:
    """An API server with what the operator puts into a guest that has a catalog, and OLM beside it."""
    (tmp_path / "api").mkdir()
    server = ApiServer(tmp_path / "api", bin_dir)
    started: list[subprocess.Popen[bytes]] = []
    server.start()
    try:
        async with Client(load_config(server.kubeconfig)) as client:
            await crds_support.install(client, definitions)
            found = GuestCatalogs((), "r.test/olm:1", "r.test/opm:1", (), used=True)
            g = GuestParams(params(), images=IMAGES, own_network=True, highly_available=False, catalogs=found)
            made = olm.objects(g)
            for one in sorted(made, key=lambda one: one["kind"] != "Namespace"):
                await client.apply(one)
            words = {one["metadata"]["name"]: _command(one) for one in made if one["kind"] == "Deployment"}
            started = [_run(programs, name, words[name], server) for name in ("olm-operator", "catalog-operator")]
            yield client, server
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
            process.wait()
        server.stop()


def _command(deployment: dict[str, Any]) -> list[str]:
    command: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
    return command


def _run(programs: Path, name: str, words: list[str], server: ApiServer) -> subprocess.Popen[bytes]:
    """A container of ours as a process: the same words, another kubeconfig."""
    program = programs / Path(words[0]).name
    config = [f"--kubeconfig={server.kubeconfig}"] if name == "catalog-operator" else []
    env = {
        **os.environ,
        "OPERATOR_NAMESPACE": olm.NAMESPACE,
        "OPERATOR_NAME": name,
        "KUBECONFIG": str(server.kubeconfig),
    }
    with (server.directory / f"{name}.log").open("wb") as log:
        return subprocess.Popen([program, *words[1:], *config], stdout=log, stderr=log, env=env)


@pytest.fixture
async def mirrored(tmp_path: Path) -> AsyncIterator[Path]:
    """The documents of a catalog of two versions, of which mirroring kept the newer one."""
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    source, one = start(tmp_path / "source", passwords=True)
    target, other = start(tmp_path / "target", passwords=True)
    try:
        listed = operators.documents({"1.0.0": "", "2.0.0": ""}, "r.test/hello:1")
        folder = operators.catalog_image(tmp_path / "catalog", listed, None)
        async with pusher(source) as to:
            await to.push(folder, "operators/hello-index", tag="v1")
        yield await _mirrored(tmp_path, source, target)
    finally:
        for process in (one, other):
            process.kill()
            process.wait()


async def _mirrored(tmp_path: Path, source: Registry, target: Registry) -> Path:
    site = Site(tmp_path / "site", source, target)
    packages = [{"name": operators.PACKAGE}]
    site.configure({"operators": [{"catalog": f"{source.host}/operators/hello-index:v1", "packages": packages}]})
    site.ok("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
    async with RegistryClient(target.auths, target.ca_pem) as client:
        path = f"configs/{operators.PACKAGE}/catalog.json"
        files = await client.read_files(f"{target.host}/operators/hello-index:v1", [path])
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs/catalog.json").write_bytes(files[path])
    return tmp_path / "configs"


@pytest.fixture
def served(mirrored: Path, programs: Path, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    words = [str(programs / "opm"), "serve", str(mirrored), f"--port={port}", f"--pprof-addr=127.0.0.1:{free_port()}"]
    with (tmp_path / "opm.log").open("wb") as log:
        process = subprocess.Popen([*words, f"--cache-dir={tmp_path / 'cache'}", "--cache-enforce-integrity=false"],
                                   stdout=log, stderr=log)  # fmt: skip
    probe = [str(programs / "grpc_health_probe"), f"-addr=127.0.0.1:{port}"]
    end = time.monotonic() + 300
    while subprocess.run(probe, capture_output=True, check=False).returncode:
        assert process.poll() is None and time.monotonic() < end, (tmp_path / "opm.log").read_text()
        time.sleep(0.2)
    yield f"127.0.0.1:{port}"
    process.kill()
    process.wait()


async def test_a_subscription_to_a_mirrored_catalog_installs_its_operator(
    guest: tuple[Client, ApiServer], served: str
) -> None:
    client, _ = guest
    source = {
        "apiVersion": k.CATALOGSOURCES.api_version,
        "kind": "CatalogSource",
        "metadata": {"name": "cs-hello", "namespace": olm.MARKETPLACE},
        "spec": {"sourceType": "grpc", "address": served},
    }
    await client.create(source)
    await eventually(lambda: _is_ready(client), "the catalog answers")

    spec = {
        "name": operators.PACKAGE,
        "channel": "stable",
        "source": "cs-hello",
        "sourceNamespace": olm.MARKETPLACE,
    }
    metadata = {"name": "hello", "namespace": olm.OPERATORS}
    await client.create(
        {"apiVersion": SUBSCRIPTIONS.api_version, "kind": "Subscription", "metadata": metadata, "spec": spec}
    )
    await eventually(lambda: client.get_or_none(k.DEPLOYMENTS, operators.PACKAGE, olm.OPERATORS), "its Deployment")
    await eventually(lambda: client.get_or_none(k.CRDS, f"hellos.{operators.GROUP}"), "its kind")
    await _available(client, operators.PACKAGE, olm.OPERATORS)
    await eventually(lambda: _has(client, CSV, olm.OPERATORS, "Succeeded"), "Succeeded")
    # The server of packages is installed by OLM in the same way, with an API of its own.
    await eventually(lambda: client.get_or_none(k.DEPLOYMENTS, olm.PACKAGES, olm.NAMESPACE), "packages by OLM")
    name = f"v1.packages.{olm.GROUP}"
    service = await eventually(lambda: _api_service(client, name), "the API of packages")
    assert service["spec"]["service"]["namespace"] == olm.NAMESPACE


async def _is_ready(client: Client) -> bool:
    found = await client.get(k.CATALOGSOURCES, "cs-hello", olm.MARKETPLACE)
    state = ((found.get("status") or {}).get("connectionState") or {}).get("lastObservedState")
    return bool(state == "READY")


async def _has(client: Client, name: str, namespace: str, phase: str) -> bool:
    found = await client.get(VERSIONS, name, namespace)
    return bool((found.get("status") or {}).get("phase") == phase)


async def _api_service(client: Client, name: str) -> Any:
    kind = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
    return await client.get_or_none(kind, name)


async def _available(client: Client, name: str, namespace: str) -> None:
    """What the controllers and a kubelet would report."""
    live = await client.get(k.DEPLOYMENTS, name, namespace)
    count = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    conditions = [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}]
    status = {**count, "observedGeneration": live["metadata"]["generation"], "conditions": conditions}
    await client.patch(k.DEPLOYMENTS, name, namespace, {"status": status}, subresource="status")
