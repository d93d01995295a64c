"""Pools of platform None on a real API server: machines are the user's own, so documents are kept and nodes counted."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support import crds as crds_support
from tests.support.api_server import ApiServer
from tests.support.certificates import ask_for_certificate, send_request
from tests.support.cli_runner import IMAGE, Runner
from tests.support.definitions import CLUSTER_API, VIRTUALIZATION
from tests.support.eventually import eventually
from tests.support.node_pools import (
    Object,
    clean,
    condition,
    hosted_cluster,
    node_pool,
    pool_rests,
    pool_with,
    prepare,
    quiet,
    running_operator,
)
from tests.support.own_machines import NONE, join, own_pool, report

from hcp.api.names import ANNOTATION_EXPECTED_NODES
from hcp.kube import Client
from hcp.kube import resources as r


@pytest.fixture
async def home(client: Client, namespace: str, api_server: Path) -> AsyncIterator[str]:
    """A namespace with a hosted cluster of platform None whose control plane is up."""
    await prepare(client)
    await clean(client)
    await no_nodes(client)
    await hosted_cluster(client, namespace, api_server, platform=NONE)
    yield namespace
    await no_nodes(client)
    await clean(client, namespace)


async def no_nodes(client: Client) -> None:
    """The guest is the tests' own server, on which other tests have nodes too."""
    for node in await client.list(r.NODES):
        await client.delete(r.NODES, node["metadata"]["name"])


async def user_data(client: Client, home: str, name: str = "demo") -> Object:
    """The only user data of a pool."""

    async def ask() -> Object:
        found = [
            secret
            for secret in await client.list(r.SECRETS, f"{home}-demo", labels="hypershift.openshift.io/nodepool-secret")
            if secret["metadata"]["name"].startswith(f"user-data-{name}-")
        ]
        [only] = found
        return only

    return await eventually(ask)


async def document(client: Client, home: str, name: str = "demo") -> Object:
    """What a machine with this user data would be given."""
    target = (await user_data(client, home, name))["metadata"]["name"].removeprefix(f"user-data-{name}-")
    stored = await eventually(
        lambda: client.get(r.SECRETS, f"ignition-{home}-demo.{name}-{target}", "hypershift"), "its document"
    )
    found: Object = json.loads(gzip.decompress(base64.b64decode(stored["data"]["payload"])))
    return found


def kubelet(found: Object) -> str:
    return next(str(unit["contents"]) for unit in found["systemd"]["units"] if unit["name"] == "kubelet.service")


async def test_a_pool_gets_its_document_and_no_machines(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server) as writes:
        await client.create(own_pool(home))
        pool = await pool_with(client, home, "Ready", "True")
        secret = await user_data(client, home)
        pointer = json.loads(base64.b64decode(secret["data"]["value"]))
        assert pointer["ignition"]["config"]["merge"][0]["source"] == "https://ignition.example.com/ignition"
        assert secret["metadata"]["annotations"]["hypershift.openshift.io/nodePool"] == f"{home}/demo"
        target = secret["metadata"]["name"].removeprefix("user-data-demo-")
        token = await client.get(r.SECRETS, f"token-demo-{target}", f"{home}-demo")
        assert token["metadata"]["annotations"]["hypershift.openshift.io/node-pool-upgrade-type"] == "InPlace"
        assert "--node-labels=hypershift.openshift.io/nodePool=demo," in kubelet(await document(client, home))
        for kind in (r.ROUTES, *CLUSTER_API, *VIRTUALIZATION):
            assert await client.list(kind, f"{home}-demo") == [], kind
        assert await client.get_or_none(r.NETWORKPOLICIES, "virt-launcher", f"{home}-demo") is None
        told = {entry["type"]: entry for entry in pool["status"]["conditions"]}
        assert "InPlace" in told["UpdateManagementEnabled"]["message"]
        assert told["UpdateManagementEnabled"]["status"] == "True"
        assert told["AllFieldsHonoured"]["status"] == "True"
        assert told["UpdatingVersion"]["status"] == told["UpdatingConfig"]["status"] == "False"
        assert told["AllNodesHealthy"]["reason"] == "NotFound"
        assert "r.test/disk@sha256:3" in told["ValidPlatformImage"]["message"]
        absent = {"AllMachinesReady", "KubeVirtNodesLiveMigratable", "ValidMachineTemplate"}
        assert not absent & set(told)
        assert not [entry for entry in told.values() if "kubevirt" in json.dumps(entry).lower()]
        assert pool["status"]["version"] == "1.36.3" and pool["status"]["replicas"] == 0
        nudge = lambda word: client.patch(  # noqa: E731
            r.NODEPOOLS, "demo", home, {"metadata": {"annotations": {"example.com/x": word}}}
        )
        await pool_rests(writes, ["nodepool"], nudge)


async def test_nodes_that_joined_are_counted_and_follow_their_pool(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server) as writes:
        taint = {"key": "example.com/slow", "effect": "NoSchedule"}
        await client.create(own_pool(home, replicas=2, nodeLabels={"zone": "a"}, taints=[taint]))

        async def waits() -> bool:
            found = await client.get(r.NODEPOOLS, "demo", home)
            return "0 of 2 nodes" in str(condition(found, "Ready")["message"])

        assert await eventually(waits)
        await join(client, "own-1")
        await join(client, "own-2", address="192.0.2.8", ready="False")
        await join(client, "own-3", pool="other")

        async def counted() -> Object:
            found = await client.get(r.NODEPOOLS, "demo", home)
            assert found["status"]["replicas"] == 1, found["status"]
            assert "own-2: KubeletSaysSo" in condition(found, "AllNodesHealthy")["message"]
            return found

        pool: Object = await eventually(counted)
        [versions] = pool["status"]["nodesInfo"]["nodeVersions"]
        assert (versions["readyNodeCount"], versions["unreadyNodeCount"]) == (1, 1)
        assert (versions["kubeletVersion"], versions["ocpVersion"]) == ("1.36.3", "1.36.3")

        async def labelled() -> Object:
            node = await client.get(r.NODES, "own-1")
            assert node["metadata"]["labels"]["zone"] == "a"
            assert "node-role.kubernetes.io/worker" in node["metadata"]["labels"]
            assert taint in node["spec"]["taints"]
            return node

        assert "providerID" not in (await eventually(labelled))["spec"]
        assert "zone" not in (await client.get(r.NODES, "own-3"))["metadata"]["labels"]
        await report(client, "own-2", address="192.0.2.8")
        await pool_with(client, home, "Ready", "True")
        # Nobody ends a machine: a smaller number asks for nothing.
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"replicas": 1}})
        await quiet(writes)
        assert {node["metadata"]["name"] for node in await client.list(r.NODES)} >= {"own-1", "own-2"}
        await client.delete(r.NODES, "own-2")

        async def gone() -> bool:
            return bool((await client.get(r.NODEPOOLS, "demo", home))["status"]["replicas"] == 1)

        assert await eventually(gone)
        beat = lambda word: client.patch(  # noqa: E731
            r.NODES, "own-1", None, {"metadata": {"annotations": {"example.com/beat": word}}}
        )
        await pool_rests(writes, ["nodes"], beat)


async def test_an_upgrade_is_a_new_document_at_once(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server):
        await client.create(own_pool(home))
        await pool_with(client, home, "Ready", "True")
        first = await user_data(client, home)
        await client.patch(r.HOSTEDCLUSTERS, "demo", home, {"spec": {"release": {"image": "r.test/release:1.36.4"}}})
        await client.patch(r.NODEPOOLS, "demo", home, {"spec": {"release": {"image": "r.test/release:1.36.4"}}})

        async def upgraded() -> Object:
            pool = await client.get(r.NODEPOOLS, "demo", home)
            assert pool["status"]["version"] == "1.36.4"
            assert condition(pool, "UpdatingVersion")["status"] == "False"
            second = await user_data(client, home)
            assert second["metadata"]["name"] != first["metadata"]["name"]
            return second

        await eventually(upgraded)
        assert "release-version=1.36.4" in kubelet(await document(client, home))
        # Drives that were made a moment ago are good for a while.
        old = first["metadata"]["name"].replace("user-data-", "token-")

        async def ends() -> bool:
            token = await client.get(r.SECRETS, old, f"{home}-demo")
            return "hypershift.openshift.io/ignition-token-expiration-timestamp" in token["metadata"]["annotations"]

        assert await eventually(ends)


async def test_a_deleted_pool_takes_its_documents_along_and_leaves_nodes(
    client: Client, home: str, api_server: Path
) -> None:
    async with running_operator(api_server):
        await client.create(own_pool(home))
        await client.create(own_pool(home, "kept"))
        await pool_with(client, home, "Ready", "True")
        await pool_with(client, home, "Ready", "True", "kept")
        await join(client, "own-1")
        await client.delete(r.NODEPOOLS, "demo", home)

        async def gone() -> bool:
            return await client.get_or_none(r.NODEPOOLS, "demo", home) is None

        assert await eventually(gone)
        for namespace in (f"{home}-demo", "hypershift"):
            marks = [
                (secret["metadata"].get("annotations") or {}).get("hypershift.openshift.io/nodePool")
                for secret in await client.list(r.SECRETS, namespace)
            ]
            assert f"{home}/demo" not in marks
            assert f"{home}/kept" in marks
        assert await client.get(r.NODES, "own-1")


async def test_what_only_the_owner_of_machines_can_do_is_named(client: Client, home: str, api_server: Path) -> None:
    async with running_operator(api_server):
        management = {"autoRepair": True, "upgradeType": "Replace"}
        await client.create(own_pool(home, management=management, nodeDrainTimeout="5m"))
        pool = await pool_with(client, home, "AllFieldsHonoured", "False")
        message = condition(pool, "AllFieldsHonoured")["message"]
        assert "nodeDrainTimeout, management.autoRepair" in message
        assert condition(pool, "AutorepairEnabled")["status"] == "False"


async def test_a_pool_of_another_platform_than_its_cluster_is_refused(
    client: Client, home: str, api_server: Path
) -> None:
    async with running_operator(api_server):
        await client.create(node_pool(home))
        await pool_with(client, home, "ValidPlatformConfig", "False", words="make a pool of platform None")
        assert await client.list(r.MACHINEDEPLOYMENTS, f"{home}-demo") == []


async def test_the_bootstrap_server_is_on_a_node_port_while_somebody_asks_for_it(
    client: Client, namespace: str, api_server: Path
) -> None:
    await prepare(client)
    await clean(client)
    wanted = crds_support.rendered_cluster(namespace)
    for service in wanted["spec"]["services"]:
        service["servicePublishingStrategy"] = {"type": "NodePort", "nodePort": {"address": "192.0.2.1"}}
    await client.create({**wanted, "spec": {**wanted["spec"], "platform": NONE}})
    async with running_operator(api_server):

        async def there() -> Object:
            return await client.get(r.SERVICES, "ignition-server-node-port", "hypershift")

        service = await eventually(there)
        assert service["spec"]["type"] == "NodePort" and service["spec"]["selector"] == {"app": "ignition-server"}
        await client.delete(r.HOSTEDCLUSTERS, "demo", namespace)

        async def closed() -> bool:
            return await client.get_or_none(r.SERVICES, "ignition-server-node-port", "hypershift") is None

        assert await eventually(closed)


async def test_expected_machines_join_and_strangers_wait_for_a_person(
    client: Client, home: str, api_server: Path, shared_server: ApiServer
) -> None:
    async with running_operator(api_server):
        await client.create(own_pool(home))
        await pool_with(client, home, "Ready", "True")
        await send_request(shared_server, client, "late", "own-1")

        async def asked() -> bool:
            events = await client.list(r.EVENTS, home)
            return any(e["reason"] == "NodeCertificateWaits" and "approve late" in e["message"] for e in events)

        assert await eventually(asked)
        assert not ((await client.get(r.CSRS, "late")).get("status") or {}).get("conditions")
        body = {"metadata": {"annotations": {ANNOTATION_EXPECTED_NODES: "own-1, own-2"}}}
        await client.patch(r.NODEPOOLS, "demo", home, body)

        async def approved() -> bool:
            [answer] = (await client.get(r.CSRS, "late"))["status"]["conditions"]
            return bool(answer["type"] == "Approved")

        assert await eventually(approved)
        await client.delete(r.CSRS, "late")


async def test_a_drive_for_a_machine_carries_its_document_and_lets_it_in(
    client: Client, home: str, api_server: Path, shared_server: ApiServer, tmp_path: Path
) -> None:
    cli = Runner(api_server, tmp_path)
    where = ("create", "config-drive", "-n", home, "--nodepool", "demo")
    async with running_operator(api_server):
        await client.create(own_pool(home))
        early = await asyncio.to_thread(cli.run, *where, "--hostname", "own-1", "--nodepool", "absent")
        assert early.code == 4 and "absent" in early.err
        await pool_with(client, home, "Ready", "True")
        made = await asyncio.to_thread(cli.ok, *where, "--hostname", "own-1")
        assert made.out == "own-1.iso\n"
        drive = tmp_path / "own-1.iso"
        assert drive.stat().st_mode & 0o777 == 0o600
        value = base64.b64decode((await user_data(client, home))["data"]["value"])
        assert value in drive.read_bytes() and b'"hostname": "own-1"' in drive.read_bytes()
        printed = await asyncio.to_thread(cli.ok, *where, "--hostname", "own-2", "--ignition")
        assert printed.out.encode() == value
        await asyncio.to_thread(cli.ok, *where, "--hostname", "own-3", "--approve=false", "-o", "x.iso")
        await asyncio.to_thread(cli.ok, *where, "--hostname", "own-1")
        pool = await client.get(r.NODEPOOLS, "demo", home)
        assert pool["metadata"]["annotations"][ANNOTATION_EXPECTED_NODES] == "own-1,own-2"
        assert await ask_for_certificate(shared_server, client, f"drive-{home}", "own-1") == "Approved"


async def test_machines_of_virtual_pools_have_no_drives_of_the_user(
    client: Client, namespace: str, api_server: Path, tmp_path: Path
) -> None:
    await prepare(client)
    await clean(client)
    await client.create(node_pool(namespace))
    words = ("create", "config-drive", "-n", namespace, "--nodepool", "demo", "--hostname", "own-1")
    refused = Runner(api_server, tmp_path).run(*words)
    assert refused.code == 1 and "its platform is KubeVirt" in refused.err
    await clean(client, namespace)


async def test_a_cluster_is_made_published_on_the_address_of_a_node(
    client: Client, namespace: str, api_server: Path, tmp_path: Path
) -> None:
    await prepare(client)
    await clean(client)
    await join(client, "management", pool="none", address="192.0.2.44")
    cli = Runner(api_server, tmp_path)
    base = ("--name", "own", "-n", namespace, "--pull-secret", str(cli.pull_secret), "--release-image", IMAGE)
    made = cli.ok("create", "cluster", "none", *base)
    assert "create config-drive --nodepool own" in made.err
    cluster = await client.get(r.HOSTEDCLUSTERS, "own", namespace)
    strategies = [entry["servicePublishingStrategy"] for entry in cluster["spec"]["services"]]
    assert strategies == [{"type": "NodePort", "nodePort": {"address": "192.0.2.44"}}] * 5
    pool = await client.get(r.NODEPOOLS, "own", namespace)
    assert pool["spec"]["platform"] == {"type": "None"} and pool["spec"]["management"]["upgradeType"] == "InPlace"
    wrong = cli.run("create", "nodepool", "kubevirt", "--name", "vms", "--cluster-name", "own", "-n", namespace)
    assert wrong.code == 1 and "create nodepool none" in wrong.err
    cli.ok("create", "nodepool", "none", "--name", "edge", "--cluster-name", "own", "-n", namespace)
    assert (await client.get(r.NODEPOOLS, "edge", namespace))["spec"]["replicas"] == 0
    scaled = cli.ok("scale", "nodepool", "edge", "--replicas", "3", "-n", namespace)
    assert "your own" in scaled.err
    await client.delete(r.NODES, "management")
    cli.ok("destroy", "cluster", "none", "--name", "own", "-n", namespace)
    assert not [s for s in await client.list(r.SECRETS, namespace) if s["metadata"]["name"].startswith("own-")]
    await clean(client, namespace)
