"""An operator, its bundle and its catalog in a registry, mirrored by `oc-mirror`, installed in a cluster with OLM."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import yaml
from tests.support import operators
from tests.support.cli_runner import BIN
from tests.support.eventually import eventually_sync
from tests.support.image_sets import API, pusher
from tests.support.registry import Registry, start

from hcp import payload
from hcp.guest import olm
from hcp.oci.writer import read_layout

SOURCE = "cs-hello-index-v1"
CSV = f"{operators.PACKAGE}.v1.0.0"


class Cluster(Protocol):
    def kubectl(self, *words: str, stdin: str | None = None) -> str: ...

    def get(self, *words: str) -> Any: ...


@contextmanager
def source(folder: Path) -> Iterator[Registry]:
    """Where the operator comes from; nobody but this machine reaches it."""
    folder.mkdir()
    made, process = start(folder, passwords=True, address="127.0.0.2")
    try:
        yield made
    finally:
        process.kill()
        process.wait()


async def fill(registry: Registry, folder: Path) -> None:
    """An operator that only waits, its bundle, and a catalog that offers it."""
    found = payload.ensure(["image-pause", "image-operator-registry"])
    async with pusher(registry) as to:
        digest = await to.push(found["image-pause"] / "image", "team/hello")
        operator = f"{registry.host}/team/hello@{digest}"
        digest = await to.push(operators.bundle_image(folder / "bundle", "1.0.0", operator), "team/hello-bundle")
        listed = operators.documents({"1.0.0": f"{registry.host}/team/hello-bundle@{digest}"}, operator)
        base = read_layout(found["image-operator-registry"] / "image")
        await to.push(operators.catalog_image(folder / "catalog", listed, base), "team/hello-index", tag="v1")


async def mirrored(target: Registry, folder: Path) -> Path:
    """By `oc-mirror`, and then the source is gone; gives the folder with what it wrote for clusters."""
    with source(folder / "source") as registry:
        await fill(registry, folder)
        (folder / "both-cas.pem").write_bytes(target.ca_pem + registry.ca_pem)
        logins = {registry.host: registry.login, target.host: target.login}
        (folder / "logins.json").write_text(json.dumps({"auths": logins}))
        packages = [{"name": operators.PACKAGE}]
        listed = {"operators": [{"catalog": f"{registry.host}/team/hello-index:v1", "packages": packages}]}
        (folder / "isc.yaml").write_text(yaml.safe_dump({**API, "mirror": listed}))
        words = ["-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}/mirror", "--v2"]
        more = ["--authfile", "logins.json", "--ca", "both-cas.pem"]
        subprocess.run([BIN / "oc-mirror", *words, *more], cwd=folder, check=True)
    return folder / "w/working-dir/cluster-resources"


def mirrors(resources: Path) -> list[dict[str, Any]]:
    """Sources and their mirrors, as mirroring wrote them."""
    found = [one for one in yaml.safe_load_all((resources / "idms-oc-mirror.yaml").read_text()) if one]
    return [entry for one in found for entry in one["spec"]["imageDigestMirrors"]]


def running(cluster: Cluster, namespace: str, least: int = 1) -> bool:
    pods = cluster.get("pods", "-n", namespace)["items"]
    return len(pods) >= least and all(pod["status"].get("phase") == "Running" for pod in pods)


def ready(cluster: Cluster, source: str) -> bool:
    """Whether OLM is connected to this catalog."""
    found = cluster.get("catalogsource", source, "-n", olm.MARKETPLACE)
    return bool((found.get("status", {}).get("connectionState") or {}).get("lastObservedState") == "READY")


def offered(cluster: Cluster, source: str) -> list[str]:
    """The packages of a catalog as the cluster's API lists them."""
    found = cluster.get("packagemanifest", "-n", olm.MARKETPLACE, "-l", f"catalog={source}")["items"]
    return [one["metadata"]["name"] for one in found]


def install(cluster: Cluster, resources: Path) -> None:
    """From the CatalogSource that mirroring wrote to an operator that runs."""
    cluster.kubectl("apply", "-f", str(resources / f"{SOURCE}.yaml"))
    eventually_sync(lambda: running(cluster, olm.NAMESPACE, 3), "OLM runs, the server of packages too", 1500)

    eventually_sync(lambda: ready(cluster, SOURCE), "the catalog answers", 1200)
    eventually_sync(lambda: offered(cluster, SOURCE) == [operators.PACKAGE], "packages by the API of the cluster", 1200)
    spec = {"name": operators.PACKAGE, "channel": "stable", "source": SOURCE, "sourceNamespace": olm.MARKETPLACE}
    subscription = {
        "apiVersion": f"{olm.GROUP}/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": "hello", "namespace": olm.OPERATORS},
        "spec": spec,
    }
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(subscription))

    def succeeded() -> bool:
        found = cluster.get("csv", "-n", olm.OPERATORS)["items"]
        phases = {one["metadata"]["name"]: one.get("status", {}).get("phase") for one in found}
        return bool(phases.get(CSV) == "Succeeded")

    eventually_sync(succeeded, "the operator is installed", 1800)
    (pod,) = cluster.get("pods", "-n", olm.OPERATORS)["items"]
    assert pod["status"]["phase"] == "Running"


def told(cluster: Cluster) -> str:
    """What a person would look at."""
    kinds = "pods,catalogsource,csv,subscription,installplan,events"
    return cluster.kubectl("get", kinds, "-A")[-6000:]
