"""What annotations and fields ask of a control plane reaches it: somebody else's etcd, images, releases, log levels."""

from __future__ import annotations

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer, free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import reports
from tests.support.registry import Registry

from hcp import pki
from hcp.api import names
from hcp.kube import Client, load_config, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.operator import process
from hcp.operator.support import Support

Object = dict[str, Any]
ETCD = "etcd.example.test:2379"


@pytest.fixture
async def admin(server: ApiServer) -> AsyncIterator[Client]:
    """An operator is at work."""
    config = load_config(server.kubeconfig)
    async with Client(config) as client:
        await s.prepare(client)
        local = frozenset({"localhost"})
        options = process.Options(config, health_port=-1, inside=False, internal_registries=local, support=Support())
        task = asyncio.create_task(process.Operator(options).run())
        yield client
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class ForeignEtcd:
    """A real etcd that only lets in who has a certificate of its own authority."""

    def __init__(self, directory: Path, bin_dir: Path) -> None:
        self.port = free_port()
        ca = pki.new_ca("their-etcd")
        pair = pki.issue(ca, "etcd", dns=("etcd.example.test",), ips=("127.0.0.1",), usage="both")
        login = pki.issue(ca, "tenant", usage="client")
        self.login = {"etcd-client-ca.crt": ca.cert_pem, "etcd-client.crt": login.cert_pem}
        self.login["etcd-client.key"] = login.key_pem
        directory.mkdir()
        files = {"ca.crt": ca.cert_pem, "server.crt": pair.cert_pem, "server.key": pair.key_pem}
        for name, content in files.items():
            (directory / name).write_bytes(content)
        url = f"https://127.0.0.1:{self.port}"
        with (directory / "etcd.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    bin_dir / "etcd",
                    f"--data-dir={directory / 'data'}",
                    f"--listen-client-urls={url}",
                    f"--advertise-client-urls={url}",
                    f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
                    f"--cert-file={directory / 'server.crt'}",
                    f"--key-file={directory / 'server.key'}",
                    f"--trusted-ca-file={directory / 'ca.crt'}",
                    "--client-cert-auth=true",
                ],
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class OnlyApi(s.HostedProcesses):
    """The API server of a hosted cluster whose etcd is elsewhere."""

    async def start_api(self, client: Client, ns: str, port: int, etcd: int) -> None:
        api = (await client.get(k.DEPLOYMENTS, "kube-apiserver", ns))["spec"]["template"]["spec"]
        arguments = await self._materialize(client, ns, api)
        # The name stands for an address outside; here it is this machine.
        changes = {"--secure-port=6443": f"--secure-port={port}", ETCD: f"127.0.0.1:{etcd}"}
        await self._begin(s._changed(arguments, changes), f"https://127.0.0.1:{port}/readyz")


async def says(client: Client, name: str, kind: str, status: str) -> bool:
    return (await s.condition(client, name, kind)).get("status") == status


async def made(client: Client, name: str) -> bool:
    await s.give_address(client, f"clusters-{name}", "127.0.0.1")
    return await client.get_or_none(k.DEPLOYMENTS, "kube-apiserver", f"clusters-{name}") is not None


async def command(client: Client, component: str, ns: str) -> list[str]:
    live = await client.get(k.DEPLOYMENTS, component, ns)
    found: list[str] = live["spec"]["template"]["spec"]["containers"][0]["command"]
    return found


async def note(client: Client, name: str, **annotations: str | None) -> None:
    notes = {f"{names.GROUP}/{key.replace('_', '-')}": value for key, value in annotations.items()}
    await client.patch(k.HOSTEDCLUSTERS, name, "clusters", {"metadata": {"annotations": notes}})


async def test_a_control_plane_lives_on_somebody_elses_etcd(
    admin: Client, registry: Registry, tmp_path: Path, bin_dir: Path
) -> None:
    image = await s.push_release(registry, tmp_path, "1.36.3")
    theirs = ForeignEtcd(tmp_path / "theirs", bin_dir)
    hosted, port, ns = OnlyApi(tmp_path / "hosted", bin_dir), free_port(), "clusters-away"
    (tmp_path / "hosted").mkdir()
    networking = {
        "networkType": "Other",
        "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
        "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
        "apiServer": {"port": port},
    }
    unmanaged = {"endpoint": f"https://{ETCD}", "tls": {"clientSecret": {"name": "login"}}}
    etcd = {"managementType": "Unmanaged", "unmanaged": unmanaged}
    try:
        await s.create(admin, "away", image, registry, networking=networking, etcd=etcd)

        async def misconfigured() -> bool:
            await s.give_address(admin, ns, "127.0.0.1")
            told = await s.condition(admin, "away", "UnmanagedEtcdAvailable")
            return told.get("reason") == "UnmanagedEtcdMisconfigured" and "does not exist" in told["message"]

        await eventually(misconfigured, "the missing login is named")
        assert await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", ns) is None
        data = {key: base64.b64encode(value).decode() for key, value in theirs.login.items()}
        metadata = {"name": "login", "namespace": "clusters"}
        await admin.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        await eventually(lambda: made(admin, "away"), "the API server is deployed")
        assert f"--etcd-servers=https://{ETCD}" in await command(admin, "kube-apiserver", ns)
        await hosted.start_api(admin, ns, port, theirs.port)
        secret = await eventually(lambda: admin.get_or_none(k.SECRETS, "away-admin-kubeconfig", "clusters"), "a login")
        async with Client(untrusted_kubeconfig.load(base64.b64decode(secret["data"]["kubeconfig"]))) as guest:

            async def answers() -> bool:
                try:
                    return bool(await guest.list(k.NAMESPACES))
                except Exception:
                    return False

            await eventually(answers, "the hosted API answers")
        await eventually(lambda: says(admin, "away", "Available", "True"), "Available", reports(admin, ns))
        await eventually(lambda: says(admin, "away", "UnmanagedEtcdAvailable", "True"), "their etcd is used")
        found = await s.objects(admin, ns)
        assert not [key for key in found if key[0] == "StatefulSet" or ("etcd" in key[1] and key[0] == "Service")]
        assert ("PodDisruptionBudget", "etcd") not in found
    finally:
        hosted.stop()
        theirs.stop()
    await admin.delete(k.HOSTEDCLUSTERS, "away", "clusters")

    async def gone() -> bool:
        return await admin.get_or_none(k.NAMESPACES, ns) is None

    await eventually(gone, "all is gone")


async def test_annotations_reach_the_processes(admin: Client, registry: Registry, tmp_path: Path) -> None:
    image = await s.push_release(registry, tmp_path, "1.36.3")
    ns, mine = "clusters-noted", "mirror.example.test/scheduler:mine"
    await s.create(admin, "noted", image, registry)
    await note(
        admin,
        "noted",
        image_overrides=f"kube-scheduler={mine},unknown=x.example.test/y:1",
        kube_apiserver_verbosity_level="5",
        kube_controller_manager_verbosity_level="loud",
    )
    await eventually(lambda: made(admin, "noted"), "the API server is deployed")

    async def followed() -> bool:
        live = await admin.get(k.DEPLOYMENTS, "kube-scheduler", ns)
        right = live["spec"]["template"]["spec"]["containers"][0]["image"] == mine
        return right and "--v=5" in await command(admin, "kube-apiserver", ns)

    await eventually(followed, "they are followed")

    async def told() -> bool:
        assert "--v=1" in await command(admin, "kube-controller-manager", ns)
        said = (await s.condition(admin, "noted", "AllFieldsHonoured"))["message"]
        assert "no component 'unknown'" in said
        assert "'loud' is not a number" in said
        plane = await admin.get(k.HOSTEDCONTROLPLANES, "noted", ns)
        return bool(plane["metadata"]["annotations"][names.ANNOTATION_DISABLE_AUTOSCALER] == "true")

    await eventually(told, "what is not followed is said, and told to Cluster API")
    await admin.delete(k.HOSTEDCLUSTERS, "noted", "clusters")


async def test_a_release_too_far_away_is_rolled_out_only_by_force(
    admin: Client, registry: Registry, tmp_path: Path
) -> None:
    near, far = await s.push_release(registry, tmp_path, "1.36.3"), await s.push_release(registry, tmp_path, "1.39.0")
    ns = "clusters-forced"
    await s.create(admin, "forced", near, registry)
    await eventually(lambda: made(admin, "forced"), "the API server is deployed")
    history = [{"state": "Completed", "version": "1.36.3", "image": near, "startedTime": "2026-01-01T00:00:00Z"}]
    history[0] |= {"completionTime": "2026-01-01T00:00:00Z", "verified": False}  # type: ignore[dict-item]
    done = {"controlPlaneVersion": {"desired": {"image": near}, "history": history, "observedGeneration": 1}}
    await admin.patch(k.HOSTEDCLUSTERS, "forced", "clusters", {"status": done}, subresource="status")
    before = await command(admin, "kube-apiserver", ns)
    await admin.patch(k.HOSTEDCLUSTERS, "forced", "clusters", {"spec": {"release": {"image": far}}})

    async def blocked() -> bool:
        told = await s.condition(admin, "forced", "Progressing")
        return told.get("reason") == "Blocked" and "leaves out 2 minor" in told["message"]

    await eventually(blocked, "it is held up")
    assert await command(admin, "kube-apiserver", ns) == before
    await note(admin, "forced", force_upgrade_to=far)

    async def moved() -> bool:
        live = await admin.get(k.HOSTEDCLUSTERS, "forced", "clusters")
        return live["status"]["version"]["desired"].get("version") == "1.39.0" and await says(
            admin, "forced", "ValidReleaseImage", "True"
        )

    await eventually(moved, "and goes on by force")
    await admin.delete(k.HOSTEDCLUSTERS, "forced", "clusters")
