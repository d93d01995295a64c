"""A hosted cluster is backed up while it runs, lost, and comes back: its data, its authorities, its kubeconfigs."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands, mentions, says
from tests.support.registry import Registry
from tests.support.restored_pods import RestoredPods

from hcp.api import names
from hcp.backup import checking, creating, objects, restoring, verifying
from hcp.backup.naming import Name
from hcp.backup.sealing import KEY, BrokenBackup, Lock
from hcp.backup.stores.folder import Folder
from hcp.controlplane.meta import secret_data
from hcp.errors import HcpError
from hcp.etcd.client import Etcd, Identity
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k

NAME = "kept"
NS = f"clusters-{NAME}"
LOCK = Lock(KEY, b"k" * 32)
LOGIN = f"{NAME}-admin-kubeconfig"


async def kubeconfig(client: Client) -> bytes:
    return base64.b64decode((await client.get(k.SECRETS, LOGIN, "clusters"))["data"]["kubeconfig"])


async def authorities(client: Client) -> dict[str, Any]:
    return {name: (await client.get(k.SECRETS, name, NS))["data"] for name in objects.NEEDED}


def reach(pods: RestoredPods) -> creating.Reach:
    """Without a kubelet nobody forwards ports: straight to the process."""

    @contextlib.asynccontextmanager
    async def straight(client: Client, hosted: str) -> AsyncIterator[Etcd]:
        data = secret_data(await client.get(k.SECRETS, "etcd-client-tls", hosted))
        identity = Identity(data["ca.crt"], data["etcd-client.crt"], data["etcd-client.key"])
        async with Etcd(pods.etcd_url, identity) as member:
            yield member

    return straight


async def backed_up(admin: Client, pods: RestoredPods, store: Folder, when: int = 1) -> Name:
    cluster = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
    now = dt.datetime(2026, 1, when, tzinfo=dt.UTC)
    return await creating.create(admin, store, LOCK, cluster, NS, reach(pods), lambda _: None, now)


async def test_a_cluster_comes_back_as_it_was(
    admin: Client,
    operator: Callable[..., Running],
    image: str,
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
) -> None:
    operator(own_image="registry.example/hcp:test")
    port, store = free_port(), Folder(str(tmp_path / "store"))
    networking = {"networkType": "Other", "serviceNetwork": [{"cidr": "172.31.0.0/16"}], "apiServer": {"port": port}}
    await s.create(admin, NAME, image, registry, networking=networking)
    before = RestoredPods(tmp_path / "before", bin_dir, admin, NS, port)
    (tmp_path / "before").mkdir()
    await before.begin()
    try:
        await eventually(lambda: says(admin, NAME, "Available", "True"), "Available", hands(admin, NS))
        login, had = await kubeconfig(admin), await authorities(admin)
        async with Client(untrusted_kubeconfig.load(login)) as guest:
            for number in range(20):
                meta = {"name": f"row-{number}", "namespace": "default"}
                await guest.create(
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"n": str(number)}}
                )
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "word", "namespace": "default"}}
            await guest.create({**secret, "stringData": {"word": "of the tenant"}})
            name = await backed_up(admin, before, store)
            await guest.delete(k.CONFIGMAPS, "row-3", "default")
        with pytest.raises(HcpError, match="exists"):
            whole, kept = await checking.whole(store, name, LOCK)
            await restoring.begin(admin, kept, whole, str(name), lambda _: None)
        await _looked_at(store, name, bin_dir)
    finally:
        await before.end()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")
    await eventually(lambda: gone(admin, NAME), "the cluster is lost")

    after = RestoredPods(tmp_path / "after", bin_dir, admin, NS, port)
    (tmp_path / "after").mkdir()
    whole, kept = await checking.whole(store, name, LOCK)
    await restoring.begin(admin, kept, whole, str(name), lambda _: None)
    await after.begin()
    try:
        await eventually(lambda: _true(after.filling is not None), "etcd waits for its snapshot", hands(admin, NS))
        await eventually(
            lambda: mentions(admin, NAME, "EtcdSnapshotRestored", "waits for the snapshot"), "waiting", hands(admin, NS)
        )
        # A second run changes nothing, and what does not arrive whole is not taken.
        await restoring.begin(admin, kept, whole, str(name), lambda _: None)
        assert await after.send("0" * 64, checking.snapshot(store, name, LOCK)) == 1
        assert after.filling is not None
        assert await after.send(whole.snapshot.sha256, checking.snapshot(store, name, LOCK)) == 0
        await eventually(lambda: says(admin, NAME, "Available", "True"), "Available again", hands(admin, NS))
        for kind in ("EtcdSnapshotRestored", "HostedClusterRestoredFromBackup"):
            await eventually(lambda kind=kind: says(admin, NAME, kind, "True"), kind, hands(admin, NS))  # type: ignore[misc]
        assert await authorities(admin) == had
        # The very kubeconfig of before: its authority, its certificate, and here its address too.
        async with Client(untrusted_kubeconfig.load(login)) as guest:
            rows = {one["metadata"]["name"] for one in await guest.list(k.CONFIGMAPS, "default")}
            assert {f"row-{number}" for number in range(20)} <= rows
            found = await guest.get(k.SECRETS, "word", "default")
            assert base64.b64decode(found["data"]["word"]) == b"of the tenant"
            assert int(found["metadata"]["resourceVersion"]) < 1_000_000_000
            made = await guest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
            assert int(made["metadata"]["resourceVersion"]) > 1_000_000_000
    finally:
        await after.end()
        await admin.delete(k.HOSTEDCLUSTERS, NAME, "clusters")
    await eventually(lambda: gone(admin, NAME), "gone")


async def _true(value: bool) -> bool:
    return value


async def _looked_at(store: Folder, name: Name, bin_dir: Path) -> None:
    """Verifying finds it good, and whatever is done to the file bad."""
    whole, kept = await checking.whole(store, name, LOCK)
    assert {one["metadata"]["name"] for one in kept.given} == {
        f"{NAME}-pull-secret",
        f"{NAME}-trust",
        f"{NAME}-etcd-encryption-key",
    }
    found = await verifying.verify(checking.snapshot(store, name, LOCK), whole.snapshot, bin_dir)
    assert found.problems == ()
    assert found.now.keys == whole.snapshot.keys > 20
    file = Path(store.place) / name.file
    raw = file.read_bytes()
    assert b"of the tenant" not in raw
    for broken, words in (
        (raw[:-1], "ends too early"),
        (raw[: len(raw) // 2], "ends too early"),
        (raw[:2000] + bytes((raw[2000] ^ 1,)) + raw[2001:], "cannot be opened"),
        (raw + b"more", "stands behind its end"),
    ):
        file.write_bytes(broken)
        with pytest.raises(BrokenBackup, match=words):
            await checking.whole(store, name, LOCK)
    file.write_bytes(raw)
    with pytest.raises(BrokenBackup, match="another one"):
        await checking.whole(store, name, Lock(KEY, b"x" * 32))
    other = Name("clusters", "other", name.stamp)
    (file.parent / other.file).write_bytes(raw)
    with pytest.raises(BrokenBackup, match="of another cluster"):
        await checking.whole(store, other, LOCK)
    later = Name("clusters", NAME, "20270101T000000Z")
    (file.parent / later.file).write_bytes(raw)
    with pytest.raises(BrokenBackup, match="of another time"):
        await checking.whole(store, later, LOCK)


async def test_a_snapshot_that_cannot_be_fetched_is_told_and_etcd_does_not_start_empty(
    admin: Client, operator: Callable[..., Running], image: str, registry: Registry
) -> None:
    operator(own_image="registry.example/hcp:test")
    storage = {"type": "PersistentVolume", "restoreSnapshotURL": ["s3://bucket/snapshot.db"]}
    await s.create(admin, "fetch", image, registry, etcd={"managementType": "Managed", "managed": {"storage": storage}})
    try:
        await eventually(
            lambda: mentions(admin, "fetch", "EtcdSnapshotRestored", "signed https:// address"),
            "told",
            hands(admin, "clusters-fetch"),
        )
        assert await admin.get_or_none(k.STATEFULSETS, "etcd", "clusters-fetch") is None
    finally:
        await admin.delete(k.HOSTEDCLUSTERS, "fetch", "clusters")
    await eventually(lambda: gone(admin, "fetch"), "gone")


async def test_nothing_that_exists_is_changed_by_a_restore(admin: Client) -> None:
    meta = {"name": "taken", "namespace": "clusters"}
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "of the backup"}}
    await restoring._keep(admin, wanted)
    await restoring._keep(admin, wanted)
    with pytest.raises(HcpError, match="exists and holds something else"):
        await restoring._keep(admin, {**wanted, "data": {"a": "other"}})
    assert (await admin.get(k.CONFIGMAPS, "taken", "clusters"))["data"] == {"a": "of the backup"}
    assert names.CLI_FIELD_MANAGER in str((await admin.get(k.CONFIGMAPS, "taken", "clusters"))["metadata"])
