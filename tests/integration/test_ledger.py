"""The ledger of writes on a real API server: a write that happened without an answer is found out, not lost."""

from __future__ import annotations

from tests.support.api_server import ApiServer
from tests.support.e2e.ledger import NS, Ledger, writing
from tests.support.eventually import eventually

from hcp.kube import Client, load_config
from hcp.kube.resources import CONFIGMAPS


async def test_a_counter_that_moved_meanwhile_is_read_and_moved_on_from_there(admin: Client, server: ApiServer) -> None:
    async def further(ledger: Ledger, rounds: int) -> None:
        async def written() -> bool:
            return ledger.counted >= rounds

        await eventually(written, "writes go on")

    async with writing(load_config(server.kubeconfig), "moved") as ledger:
        for _ in range(3):
            await further(ledger, ledger.counted + 20)
            # Another version of it, as a write leaves whose answer did not come.
            mark = {"metadata": {"annotations": {"example.com/look": str(ledger.counted)}}}
            await admin.patch(CONFIGMAPS, "moved-counter", NS, mark)
        await further(ledger, ledger.counted + 20)
    assert ledger.failures == 0
