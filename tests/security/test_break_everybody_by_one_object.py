"""One object that would stop the operator or Cluster API for all clusters: endless numbers, endless depth."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.crds import changed, rendered_cluster, rendered_pool
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker

from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import Invalid

Object = dict[str, Any]
VIRT = "spec.platform.kubevirt"
ROLLING = "spec.management.replace.rollingUpdate"
# Where, which value, and what the refusal has to name.
NUMBERS: list[tuple[str, Any, str]] = [
    (f"{VIRT}.hostDevices", [{"deviceName": "gpu", "count": 100_000}], "hostDevices[0].count"),
    (f"{VIRT}.hostDevices", [{"deviceName": f"gpu{n}"} for n in range(11)], "hostDevices"),
    (f"{VIRT}.compute.cores", 2**31 - 1, "compute.cores"),
    (f"{VIRT}.compute.memory", "1e" + "9" * 60, "compute.memory"),
    (f"{VIRT}.additionalNetworks", [{"name": 'x"\n'}], "additionalNetworks[0].name"),
    ("spec.replicas", 2**31 - 1, "spec.replicas"),
    # Read by Cluster API into 32 bits and durations, in one cache for all clusters.
    (f"{ROLLING}.maxSurge", 99_999_999_999, "maxSurge"),
    (f"{ROLLING}.maxSurge", "x%", "maxSurge"),
    (f"{ROLLING}.maxUnavailable", -1, "maxUnavailable"),
    ("spec.nodeDrainTimeout", "99999999999999999999h", "nodeDrainTimeout"),
    ("spec.nodeDrainTimeout", "1000000h", "nodeDrainTimeout"),
    ("spec.nodeVolumeDetachTimeout", "soon", "nodeVolumeDetachTimeout"),
]


@pytest.mark.parametrize(("path", "value", "named"), NUMBERS, ids=lambda value: str(value)[:40])
async def test_numbers_without_an_end_are_refused(
    admin: Client, attacker: Attacker, path: str, value: Any, named: str
) -> None:
    pool = changed(rendered_pool(attacker.namespace), path, value)
    with pytest.raises(Invalid) as refused:
        await attacker.client.create(pool)
    assert named in str(refused.value)


async def test_names_that_fit_no_label_are_refused(attacker: Attacker) -> None:
    with pytest.raises(Invalid, match="infraID"):
        await attacker.cluster("long", infraID="x" * 64)


def deep(levels: int) -> str:
    return '{"a":[' * levels + "1" + "]}" * levels


async def send(attacker: Attacker, wanted: Object, marker: str, text: str) -> None:
    """By hand: an ordinary client cannot even write it."""
    resource = k.HOSTEDCLUSTERS if wanted["kind"] == "HostedCluster" else k.NODEPOOLS
    body = json.dumps(wanted).replace(json.dumps(marker), text)
    call = attacker.client._call("create", resource, attacker.namespace)
    headers = {"Content-Type": "application/json"}
    path = resource.path(attacker.namespace)
    await attacker.client.transport.send(call, "POST", path, data=body.encode(), headers=headers)


async def test_depth_without_an_end_hurts_only_its_owner(
    admin: Client, attacker: Attacker, management: ApiServer
) -> None:
    """The objects are there when the operator starts, and more come while it runs."""
    levels = {"lists": 40, "python": 450, "server": 4500}

    async def attack(prefix: str) -> None:
        for name, depth in levels.items():
            wanted = rendered_cluster(attacker.namespace, f"{prefix}-{name}")
            wanted["spec"]["infraID"] = f"{prefix}-{name}"
            wanted["spec"]["platform"]["aws"] = "marker"
            await send(attacker, wanted, "marker", deep(depth))
            pool = rendered_pool(attacker.namespace, f"{prefix}-{name}")
            pool["spec"]["platform"]["aws"] = "marker"
            await send(attacker, pool, "marker", deep(depth))

    async def told(name: str) -> bool:
        return "deeper" in str((await attacker.condition(name, "ValidConfiguration")).get("message"))

    async def acted_on(name: str) -> bool:
        return bool(await attacker.condition(name, "ValidConfiguration"))

    await attack("before")
    operator = s.OperatorProcess(management)
    try:
        await attacker.cluster("first")
        await eventually(lambda: acted_on("first"), "a good cluster is acted on")
        await attack("while")
        await attacker.cluster("second")
        await eventually(lambda: acted_on("second"), "another good cluster is acted on")
        for name in (f"{prefix}-{name}" for prefix in ("before", "while") for name in levels):
            await eventually(functools.partial(told, name), "its owner is told")
        assert not operator.ended
        assert "Traceback" not in management.log("operator")
    finally:
        operator.kill()
