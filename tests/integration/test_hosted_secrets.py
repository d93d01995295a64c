"""What an official manager of Cluster API sees that follows the Secrets of all namespaces: those of hosted ones only.

In the manager's place is kubectl, which follows by the same library, or a program that only tells how it was started.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds
from tests.support.api_server import ApiServer, account_token
from tests.support.definitions import real
from tests.support.eventually import eventually

from hcp import payload, pki
from hcp.api.manifests import account, binding, cluster_binding, cluster_role, service_account
from hcp.install import capi as rights
from hcp.kube import Client, ClusterConfig
from hcp.kube import resources as k
from hcp.kube.config import UserAuth
from hcp.kube.errors import Forbidden, Gone, Unauthorized
from hcp.payload.builders.capi import OFFICIAL

Object = dict[str, Any]
_TELLS = '#!/bin/sh\nfor last in "$@"; do :; done\ncat "${last#--kubeconfig=}"\necho\nexec sleep 3600\n'


@dataclass
class Place:
    """A namespace of a test's own kind: with a Cluster or without, ours or not."""

    admin: Client
    name: str
    manager: str
    home: str

    async def cluster(self) -> None:
        metadata = {"name": "demo", "namespace": self.name}
        await self.admin.apply(
            {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": metadata, "spec": {}}
        )

    async def ours(self) -> None:
        """What the operator does in a hosted namespace."""
        subject = account(self.manager, self.home)
        role = f"{self.manager}-hosted"
        await self.admin.apply(binding(self.manager, self.name, subject, kind="ClusterRole", role_name=role))

    async def secret(self, name: str, **labels: str) -> None:
        metadata = {"name": name, "namespace": self.name, "labels": labels}
        await self.admin.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})


@dataclass
class World:
    """One manager's account, with the rights of `hcp install`."""

    admin: Client
    home: str
    manager: str
    kubeconfig: Path

    async def place(self) -> Place:
        made = await self.admin.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "place-"}}
        )
        return Place(self.admin, str(made["metadata"]["name"]), self.manager, self.home)

    async def hosted(self) -> Place:
        made = await self.place()
        await made.ours()
        await made.cluster()
        return made


@pytest.fixture
async def world(shared_server: ApiServer, client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    await crds.install(client, real(k.CAPI_CLUSTERS))
    manager = f"manager-{namespace}"
    await client.apply(service_account(manager, namespace, []))
    await client.apply(cluster_role(f"hypershift-{manager}", rights.core_rules()))
    await client.apply(cluster_binding(f"hypershift-{manager}", account(manager, namespace)))
    hosted = [*rights.core_hosted_rules(), *rights.follower_rules()]
    await client.apply(cluster_role(f"{manager}-hosted", hosted))
    token = await account_token(client, manager, namespace)
    config = pki.kubeconfig(shared_server.url, (shared_server.directory / "ca.crt").read_bytes(), b"", b"")
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "manager.kubeconfig"
    path.write_text(json.dumps(config))
    yield World(client, namespace, manager, path)


@pytest.fixture
def start(world: World, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Runs a program as the official manager."""
    running: list[subprocess.Popen[str]] = []

    def run(official: Path, *arguments: str) -> subprocess.Popen[str]:
        program = tmp_path / "manager"
        shutil.copy(payload.ensure(["hosted-secrets"])["hosted-secrets"] / "bin/hosted-secrets", program)
        Path(f"{program}{OFFICIAL}").symlink_to(official)
        command = [str(program), *arguments, f"--kubeconfig={world.kubeconfig}"]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path))
        return running[-1]

    yield run
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
async def through(
    world: World, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> AsyncIterator[ClusterConfig]:
    """How the manager reaches the API server."""
    script = tmp_path / "tells"
    script.write_text(_TELLS)
    script.chmod(0o755)
    process = start(script)
    assert process.stdout is not None
    given = json.loads(await asyncio.to_thread(process.stdout.readline))
    cluster, user = given["clusters"][0]["cluster"], given["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"])
    yield ClusterConfig(cluster["server"], ca_pem=authority, auth=UserAuth(token=user["token"]))


async def test_a_client_of_kubernetes_follows_hosted_namespaces_as_they_come(
    world: World, start: Callable[..., subprocess.Popen[str]], bin_dir: Path, tmp_path: Path
) -> None:
    first, later, foreign = await world.hosted(), await world.place(), await world.place()
    await first.secret("early")
    await foreign.secret("private")
    await later.secret("waiting")
    await later.cluster()  # which is hosted, but not bound yet
    out = '{.metadata.namespace}/{.metadata.name}{"\\n"}'
    process = start(bin_dir / "kubectl", "get", "secrets", "--all-namespaces", "--watch", f"--output=jsonpath={out}")
    seen: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        seen.extend(line.strip() for line in process.stdout)

    reading = asyncio.create_task(asyncio.to_thread(read))
    try:

        async def shown(*wanted: str) -> bool:
            assert process.poll() is None, "it goes on"
            return set(wanted) <= set(seen)

        await eventually(lambda: shown(f"{first.name}/early"), "what was there")
        await first.secret("late")
        await eventually(lambda: shown(f"{first.name}/late"), "what came")
        await later.ours()
        await eventually(lambda: shown(f"{later.name}/waiting"), "a namespace that was bound later")
        new = await world.hosted()
        await new.secret("young")
        await eventually(lambda: shown(f"{new.name}/young"), "a new hosted namespace")
        await foreign.cluster()  # whoever makes such an object gives no right with it
        await foreign.secret("public")
        await new.secret("last")
        await eventually(lambda: shown(f"{new.name}/last"), "and it goes on")
        assert not [line for line in seen if line.startswith(f"{foreign.name}/")]
    finally:
        process.kill()
        await reading


async def test_all_else_is_handed_on_with_the_managers_own_rights(world: World, through: ClusterConfig) -> None:
    hosted, foreign = await world.hosted(), await world.place()
    await hosted.secret("mine")
    await foreign.secret("private")
    async with Client(through) as manager:
        opened = await eventually(lambda: manager.get(k.SECRETS, "mine", hosted.name), "its rights count")
        assert opened["metadata"]["namespace"] == hosted.name
        with pytest.raises(Forbidden):
            await manager.get(k.SECRETS, "private", foreign.name)
        with pytest.raises(Forbidden):
            await manager.list(k.SECRETS, foreign.name)
        with pytest.raises(Forbidden):
            await manager.list(k.CONFIGMAPS)
        assert any(one["metadata"]["namespace"] == hosted.name for one in await manager.list(k.CAPI_CLUSTERS))
        body = {"metadata": {"annotations": {"seen": "yes"}}}
        assert (await manager.patch(k.CAPI_CLUSTERS, "demo", hosted.name, body))["metadata"]["annotations"]


async def test_who_does_not_know_the_word_is_refused(through: ClusterConfig) -> None:
    for auth in (UserAuth(), UserAuth(token="guessed")):
        async with Client(replace(through, auth=auth)) as stranger:
            for kind in (k.SECRETS, k.CAPI_CLUSTERS):
                with pytest.raises(Unauthorized):
                    await stranger.list(kind)


async def test_a_selection_counts_and_an_old_watch_begins_anew(world: World, through: ClusterConfig) -> None:
    hosted = await world.hosted()
    await hosted.secret("plain")
    await hosted.secret("chosen", part="one")
    async with Client(through) as manager:

        async def both() -> bool:
            found = await manager.list(k.SECRETS)
            return {"plain", "chosen"} <= {one["metadata"]["name"] for one in found}

        await eventually(both, "its rights count")
        items, version = await manager.list_with_version(k.SECRETS, labels="part=one")
        assert [one["metadata"]["name"] for one in items if one["metadata"]["namespace"] == hosted.name] == ["chosen"]
        watch = {"watch": "true", "timeoutSeconds": "1", "resourceVersion": version}
        await manager.raw_text("GET", "/api/v1/secrets", params=watch)
        with pytest.raises(Gone):  # events of several namespaces have no order to go on in
            await manager.raw_text("GET", "/api/v1/secrets", params=watch)


async def test_a_manager_that_ends_ends_the_pod(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    script = tmp_path / "fails"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    process = start(script)
    assert await asyncio.to_thread(process.wait) == 3


def test_its_kubeconfig_is_said_to_be_wrong(tmp_path: Path) -> None:
    program = payload.ensure(["hosted-secrets"])["hosted-secrets"] / "bin/hosted-secrets"
    (tmp_path / "yaml").write_text("clusters: []\n")
    done = subprocess.run([program, "--kubeconfig", tmp_path / "yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is no kubeconfig in JSON" in done.stderr
