"""What a pool says when the infra cluster cannot give what it asks for."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hcp.kube import Client, Resource
from hcp.kube.errors import Forbidden, NotFound
from hcp.kubevirt.infra import Infra
from hcp.nodepool.aggregate import machines_summary
from hcp.nodepool.bootimage import import_state
from hcp.nodepool.placement import infra_problem

Object = dict[str, Any]


class Cluster:
    """An infra cluster that answers from a table; what is not in it is forbidden."""

    def __init__(self, **lists: list[Object]) -> None:
        self._lists = lists

    async def list(self, resource: Resource, *_: object) -> list[Object]:
        if resource.plural not in self._lists:
            raise Forbidden("not allowed")
        return self._lists[resource.plural]

    async def get(self, resource: Resource, name: str) -> Object:
        for item in await self.list(resource):
            if item["metadata"]["name"] == name:
                return item
        raise NotFound("there is none")


def infra(**lists: list[Object]) -> Infra:
    return Infra(cast(Client, Cluster(**lists)), "vms", external=True)


def node(cpu: str, memory: str) -> Object:
    return {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu, "memory": memory}}}


NODES = [node("4", "8Gi"), node("2", "16Gi")]


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        ({"memory": "16Gi", "cores": 2}, None),
        ({"memory": "8Gi", "cores": 20}, None),
        ({"memory": "8Gi", "cores": 4, "qosClass": "Guaranteed"}, None),
        ({"memory": "17Gi", "cores": 2}, "memory 17Gi"),
        ({"memory": "1Gi", "cores": 64}, "64 cores"),
        ({"memory": "16Gi", "cores": 4, "qosClass": "Guaranteed"}, "4 dedicated cores"),
    ],
)
async def test_a_machine_that_fits_nowhere_is_said(compute: Object, said: str | None) -> None:
    found = await infra_problem(infra(nodes=NODES), {"compute": compute})
    assert (said in found) if said and found else found is said


async def test_storage_classes_and_devices_that_are_not_there_are_said() -> None:
    kubevirt = {"spec": {"configuration": {"permittedHostDevices": {"pciHostDevices": [{"resourceName": "gpu/a"}]}}}}
    there = infra(nodes=NODES, kubevirts=[kubevirt], storageclasses=[{"metadata": {"name": "fast"}}])
    volume = {"rootVolume": {"persistent": {"storageClass": "slow"}}}
    assert "'slow'" in str(await infra_problem(there, volume))
    assert "gpu/b" in str(await infra_problem(there, {"hostDevices": [{"deviceName": "gpu/b"}]}))
    fine = {"rootVolume": {"persistent": {"storageClass": "fast"}}, "hostDevices": [{"deviceName": "gpu/a"}]}
    assert await infra_problem(there, fine) is None


async def test_what_may_not_be_looked_at_is_no_problem() -> None:
    block = {"rootVolume": {"persistent": {"storageClass": "x"}}, "hostDevices": [{"deviceName": "y"}]}
    assert await infra_problem(infra(), block) is None


def volume(phase: str, *conditions: Object) -> Object:
    return {"metadata": {"name": "cache"}, "status": {"phase": phase, "conditions": list(conditions)}}


def false(kind: str, reason: str, message: str = "") -> Object:
    return {"type": kind, "status": "False", "reason": reason, "message": message}


def test_an_import_that_cannot_work_is_said_and_one_that_waits_is_not_wrong() -> None:
    assert import_state(volume("Succeeded", false("Running", "Completed"))).done
    pull = import_state(volume("ImportInProgress", false("Running", "ImagePullFailed", "manifest unknown")))
    assert pull.failed
    assert pull.message.endswith("cache: manifest unknown")
    assert import_state(volume("ImportInProgress", false("Running", "Error", "no space"))).failed
    assert import_state(volume("Failed")).failed
    stuck = import_state(volume("Pending", false("Bound", "Pending", "no volume matches"), false("Running", "Pending")))
    assert not stuck.failed
    assert not stuck.done
    assert "Pending, no volume matches" in stuck.message
    assert not import_state({"metadata": {"name": "cache"}}).done


def test_a_disk_that_cannot_be_imported_is_said_for_its_machine() -> None:
    """Without a cache each machine imports its own disk; the KubeVirt provider tells, and the pool repeats it."""
    ready = {"type": "Ready", "status": "False", "reason": "DVImagePullFailed", "message": "1 of 2 completed"}
    why = {"type": "InfrastructureReady", "status": "False", "message": "DataVolume x import is not running: refused"}
    summary = machines_summary(
        [{"metadata": {"name": "m"}, "status": {"conditions": [ready, why]}}], "Ready", "ready", "Waiting"
    )
    assert summary.reason == "DVImagePullFailed"
    assert "import is not running: refused" in summary.message
