"""Mirror sets of an embedded cluster are followed by its node: a real containerd pulls as they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.support import crds
from tests.support.api_server import ApiServer, free_port
from tests.support.containerd import Containerd, containerd
from tests.support.definitions import real
from tests.support.eventually import eventually
from tests.support.registry import Registry, start

from hcp import payload
from hcp.api.manifests import config_map
from hcp.ignition import mirror_proxy, mirrors
from hcp.ignition.containerd import containerd_config
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.local.addons.mirrors_steps import USER, rights
from hcp.local.node.mirrors import Mirrors
from hcp.oci import Auths
from hcp.oci.push import Pusher

SOURCE = "registry.source.invalid"


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Registry]:
    (tmp_path / "mirror").mkdir()
    made, process = start(tmp_path / "mirror", passwords=True)
    yield made
    process.kill()
    process.wait()


@pytest.fixture
async def follower(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """The node's process with the rights it has in a cluster, and an administrator beside it."""
    address = f"127.0.0.1:{free_port()}"
    for module in (mirrors, mirror_proxy):
        monkeypatch.setattr(module, "MIRROR_PROXY", address)
    program = payload.ensure(["mirror-proxy"])["mirror-proxy"] / "bin" / "mirror-proxy"
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = USER
    (tmp_path / "node.kubeconfig").write_text(yaml.safe_dump(config))
    (tmp_path / "etc/certs.d/inside.example.com").mkdir(parents=True)
    (tmp_path / "etc/certs.d/inside.example.com/hosts.toml").write_text('server = "https://inside.example.com"\n')
    async with (
        Client(load_config(server.kubeconfig)) as admin,
        Client(load_config(tmp_path / "node.kubeconfig")) as node,
    ):
        await crds.install(admin, real(r.IDMS, r.ITMS, r.ICSP, r.IMAGE_CONFIGS))
        await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-config"}})
        for one in rights():
            await admin.apply(one)
        made = Mirrors(node, tmp_path / "etc", program, tmp_path / "kubelet.json")
        task = asyncio.create_task(made.run())
        yield admin
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await made.proxy.stop()


def mirror_set(
    kind: str, field: str, source: str, mirror: str, version: str = "config.openshift.io/v1"
) -> dict[str, object]:
    entry = {"source": source, "mirrors": [mirror]}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": kind.lower()}, "spec": {field: [entry]}}


async def test_the_node_pulls_through_mirror_sets_while_they_are_there(
    follower: Client, closed: Registry, tmp_path: Path
) -> None:
    image = payload.ensure(["image-pause"])["image-pause"] / "image"
    auths = Auths(closed.auths)
    async with Pusher(f"https://{closed.host}", ca_pem=closed.ca_pem, auths=auths) as pusher:
        digest = await pusher.push(image, "site/other-name", tag="v1")
    host, _, port = closed.host.partition(":")
    await follower.apply(config_map("registry-config", "openshift-config", {f"{host}..{port}": closed.ca_pem.decode()}))
    spec = {"additionalTrustedCA": {"name": "registry-config"}}
    await follower.apply(
        {"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": {"name": "cluster"}, "spec": spec}
    )
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "pull-secret", "namespace": "openshift-config"},
    }
    kind = "kubernetes.io/dockerconfigjson"
    await follower.create({**secret, "type": kind, "stringData": {".dockerconfigjson": json.dumps(closed.auths)}})
    place = f"{closed.host}/site/other-name"
    sets = [
        (mirror_set("ImageDigestMirrorSet", "imageDigestMirrors", f"{SOURCE}/one", place), f"{SOURCE}/one@{digest}"),
        (mirror_set("ImageTagMirrorSet", "imageTagMirrors", f"{SOURCE}/two", place), f"{SOURCE}/two:v1"),
        (
            mirror_set(
                *("ImageContentSourcePolicy", "repositoryDigestMirrors", f"{SOURCE}/three", place),
                version="operator.openshift.io/v1alpha1",
            ),
            f"{SOURCE}/three@{digest}",
        ),
    ]
    folder = tmp_path / "etc/certs.d"
    with containerd(tmp_path / "containerd", {"conf-release.toml": containerd_config("pause.invalid/p:1")}) as daemon:
        for made, name in sets:
            assert not await asyncio.to_thread(pulled, daemon, folder, name), "there is no other way to it"
            await follower.apply(made)
            await eventually(partial(asyncio.to_thread, pulled, daemon, folder, name), name)
        # What others wrote there stays as it was; the kubelet has the cluster's login.
        assert (folder / "inside.example.com/hosts.toml").read_text() == 'server = "https://inside.example.com"\n'

        async def login() -> bool:
            return bool(json.loads((tmp_path / "kubelet.json").read_text()) == closed.auths)

        await eventually(login, "the kubelet's login")
        for kind_of_set in (r.IDMS, r.ITMS, r.ICSP):
            await follower.delete(kind_of_set, kind_of_set.kind.lower())
        await eventually(partial(asyncio.to_thread, lambda: not (folder / SOURCE).exists()), "no mirror is left")
        assert not await asyncio.to_thread(pulled, daemon, folder, f"{SOURCE}/one:v1")
    assert (folder / closed.host / "ca.crt").exists()


def pulled(daemon: Containerd, folder: Path, image: str) -> bool:
    return daemon.ctr("images", "pull", "--hosts-dir", str(folder), image, check=False).returncode == 0
