"""A JSON patch that would mount the operator's token, leave the network policy, or stop the provider for everybody."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.node_pools import clean, condition, hosted_cluster, node_pool, prepare, running_operator
from tests.support.security.attacker import Attacker, enter

from hcp.api.names import ANNOTATION_VM_JSON_PATCH, LABEL_INFRA_ID, LABEL_NODEPOOL_NAME
from hcp.kube import Client
from hcp.kube import resources as r

Object = dict[str, Any]
VMI = "/spec/template/spec"


def add(path: str, value: Any) -> Object:
    return {"op": "add", "path": path, "value": value}


def volume(**kind: Any) -> Object:
    return add(f"{VMI}/volumes/-", {"name": "loot", **kind})


# What the attacker puts into the annotation, and the field that has to be named.
ATTACKS: dict[str, tuple[list[Object], str]] = {
    "operators-namespace": ([add("/metadata/namespace", "hypershift")], "metadata.namespace"),
    "service-account": ([volume(serviceAccount={"serviceAccountName": "operator"})], "serviceAccount"),
    "secret": ([volume(secret={"secretName": "root-ca"})], "secret"),
    "config-map": ([volume(configMap={"name": "kubelet-client-ca"})], "configMap"),
    "node-disk": ([volume(hostDisk={"path": "/etc/shadow", "type": "Disk"})], "hostDisk"),
    "node-metrics": ([volume(downwardMetrics={})], "downwardMetrics"),
    "etcds-claim": ([volume(persistentVolumeClaim={"claimName": "data-etcd-0"})], "persistentVolumeClaim"),
    "etcds-volume": ([volume(dataVolume={"name": "data-etcd-0"})], "dataVolumeTemplates"),
    "clone": (
        [add("/spec/dataVolumeTemplates/0/spec/source", {"pvc": {"namespace": "clusters-other", "name": "data"}})],
        "source",
    ),
    "sidecar": ([add("/spec/template/metadata/annotations/hooks.kubevirt.io~1hookSidecars", "[]")], "hookSidecars"),
    "devices": ([add(f"{VMI}/domain/devices/gpus", [{"name": "g", "deviceName": "nvidia.com/gpu"}])], "gpus"),
    "network": ([add(f"{VMI}/networks/-", {"name": "n", "multus": {"networkName": "kube-system/net"}})], "networks"),
    "control-plane": ([add("/spec/template/metadata/labels/app", "kube-apiserver")], "labels.app"),
    "credentials": ([add(f"{VMI}/accessCredentials", [{}])], "accessCredentials"),
    "priority": ([add(f"{VMI}/priorityClassName", "system-node-critical")], "priorityClassName"),
    "number-as-labels": ([add("/metadata/labels", 7)], "metadata.labels"),
    "number-as-label": ([add("/spec/template/metadata/labels/example.com~1x", 7)], "example.com/x"),
    "wrong-type": ([add(f"{VMI}/domain/clock", {"timezone": {"x": 1}})], "timezone"),
    "deep": ([add(f"{VMI}/affinity", json.loads("[" * 200 + "]" * 200))], "deeper"),
    "grows": (
        [add("/x", "y" * 1000), *({"op": "copy", "from": "", "path": f"/{n}"} for n in range(60))],
        "larger",
    ),
}


@pytest.fixture
async def team(client: Client, shared_server: ApiServer) -> AsyncIterator[Attacker]:
    """The attacker, with a hosted cluster that runs."""
    await prepare(client)
    await clean(client)
    attacker = await enter(client, shared_server)
    await hosted_cluster(client, attacker.namespace, shared_server.kubeconfig)
    yield attacker
    await attacker.client.close()
    await clean(client, attacker.namespace)


async def test_a_patch_that_reaches_beyond_the_machine_makes_no_template(
    client: Client, team: Attacker, api_server: Path
) -> None:
    home = team.namespace
    names = {attack: f"p{number}" for number, attack in enumerate(ATTACKS)}
    async with running_operator(api_server):
        for attack, (operations, _field) in ATTACKS.items():
            pool = node_pool(home, names[attack])
            pool["metadata"]["annotations"] = {ANNOTATION_VM_JSON_PATCH: json.dumps(operations)}
            await team.client.create(pool)
        for attack, (_operations, field) in ATTACKS.items():

            async def verdict(name: str = names[attack]) -> Object | None:
                found = condition(await client.get(r.NODEPOOLS, name, home), "ValidMachineTemplate")
                return found if found["status"] == "False" else None

            found = await eventually(verdict)
            assert found["reason"] == "InvalidKubevirtMachineTemplate"
            assert field in found["message"], (attack, found["message"])
        assert await client.list(r.KUBEVIRTMACHINETEMPLATES, f"{home}-demo") == []
        assert await client.list(r.MACHINEDEPLOYMENTS, f"{home}-demo") == []


async def test_a_machine_never_lacks_what_its_policy_selects_by(
    client: Client, team: Attacker, api_server: Path
) -> None:
    home = team.namespace
    gone = [{"op": "remove", "path": f"{where}/labels"} for where in ("/metadata", "/spec/template/metadata")]
    other = add(f"/spec/template/metadata/labels/{LABEL_INFRA_ID.replace('/', '~1')}", "neighbour")
    async with running_operator(api_server):
        for name, operations in (("gone", gone), ("other", [other])):
            pool = node_pool(home, name)
            pool["metadata"]["annotations"] = {ANNOTATION_VM_JSON_PATCH: json.dumps(operations)}
            await team.client.create(pool)

            async def template(name: str = name) -> Object | None:
                for item in await client.list(r.KUBEVIRTMACHINETEMPLATES, f"{home}-demo"):
                    if item["metadata"]["name"].startswith(f"{name}-"):
                        return item
                return None

            machine = (await eventually(template))["spec"]["template"]["spec"]["virtualMachineTemplate"]
            for metadata in (machine["metadata"], machine["spec"]["template"]["metadata"]):
                assert metadata["labels"] == {LABEL_INFRA_ID: "demo-abcde", LABEL_NODEPOOL_NAME: name}


async def test_a_bad_patch_on_a_running_pool_leaves_its_machines(
    client: Client, team: Attacker, api_server: Path
) -> None:
    home = team.namespace
    async with running_operator(api_server):
        await team.client.create(node_pool(home))

        async def deployed() -> Object | None:
            return await client.get_or_none(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")

        before = await eventually(deployed)
        bad = json.dumps(ATTACKS["service-account"][0])
        # On the HostedCluster it counts for every pool.
        body = {"metadata": {"annotations": {ANNOTATION_VM_JSON_PATCH: bad}}}
        await team.client.patch(r.HOSTEDCLUSTERS, "demo", home, body)

        async def refused() -> bool:
            found = condition(await client.get(r.NODEPOOLS, "demo", home), "ValidMachineTemplate")
            return found["status"] == "False" and "serviceAccount" in found["message"]

        assert await eventually(refused)
        after = await client.get(r.MACHINEDEPLOYMENTS, "demo", f"{home}-demo")
        assert after["spec"] == before["spec"]
        assert "serviceAccount" not in str(await client.list(r.KUBEVIRTMACHINETEMPLATES, f"{home}-demo"))
