"""What an embedded cluster takes from emulated processors, asked of a real API server with KubeVirt's definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import crds
from tests.support.definitions import VIRTUALIZATION, real
from tests.support.eventually import eventually

from hcp.kube import Client, load_config
from hcp.local.addons.applying import apply_all
from hcp.local.addons.emulation import SLOW, without_slow_instructions


def machine(namespace: str, cpu: dict[str, Any]) -> dict[str, Any]:
    domain = {"cpu": {"cores": 1, **cpu}, "devices": {}}
    metadata = {"name": "one", "namespace": namespace}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": metadata,
        "spec": {"domain": domain},
    }


async def test_only_machines_that_ask_for_no_processor_go_without_slow_instructions(
    api_server: Path, namespace: str
) -> None:
    async with Client(load_config(api_server)) as client:
        await crds.install(client, real(*VIRTUALIZATION))
        await apply_all(client, without_slow_instructions())

        async def processor(asked: dict[str, Any]) -> dict[str, Any]:
            made = await client.create(machine(namespace, asked), dry_run=True)
            found: dict[str, Any] = made["spec"]["domain"]["cpu"]
            return found

        async def told() -> bool:
            """The API server takes a policy up some time after it was written."""
            found = await processor({"model": "host-model"})
            return found.get("features") == [{"name": name, "policy": "disable"} for name in SLOW]

        await eventually(told, "machines go without them")
        assert await processor({"model": "Haswell"}) == {"cores": 1, "model": "Haswell"}
        own = {"model": "host-model", "features": [{"name": "vmx", "policy": "require"}]}
        assert await processor(own) == {"cores": 1, **own}
        assert await processor({}) == {"cores": 1}
