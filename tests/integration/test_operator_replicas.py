"""Three operator processes that share a fleet, and one that is killed.

The management cluster is a real etcd and kube-apiserver; so is the API of the guests. Machines and pods are played
(`bench/fleet_player.py`). The API server's audit log says which process wrote what, and when.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.fleet_front import NAMESPACE, name_of
from bench.fleet_world import WRITES, World
from tests.support.eventually import eventually

from hcp.api.paths import at
from hcp.kube import resources as k
from hcp.runtime.conditions import is_true
from hcp.runtime.shards import holder_of, lease_name, shard_of

CLUSTERS, NODES, SHARDS = 12, 1, 3
# Many clusters of one namespace on a busy machine.
LONG = 1800
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}, {"level": "None"}],
}


def hosted(number: int) -> str:
    return f"{NAMESPACE}-{name_of(number)}"


class Audit:
    """What was written in hosted namespaces, and by which operator process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "policy.json").write_text(json.dumps(POLICY))
        self._log = folder / "audit.log"
        self.flags = (f"--audit-policy-file={folder / 'policy.json'}", f"--audit-log-path={self._log}")

    def writes(self) -> list[tuple[str, str, str]]:
        """When, by whom, and in which hosted namespace."""
        found = []
        for line in self._log.read_text().splitlines():
            event = json.loads(line)
            agent, about = event.get("userAgent", ""), event.get("objectRef") or {}
            ns = about.get("namespace") or (about.get("name") if about.get("resource") == "namespaces" else "")
            if about.get("resource") == "hostedclusters":
                ns = f"{about.get('namespace')}-{about.get('name')}"
            if agent.startswith("hcp-operator/") and str(ns).startswith(f"{NAMESPACE}-") and event["verb"] in WRITES:
                found.append((event["stageTimestamp"], agent.removeprefix("hcp-operator/"), str(ns)))
        return sorted(found)


async def test_three_processes_share_a_fleet_and_one_is_killed(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit")
    async with World(CLUSTERS, NODES, audit.flags) as world:
        for _ in range(3):
            world.operator("--shards", str(SHARDS))

        async def held() -> dict[int, str]:
            found = {one["metadata"]["name"]: one for one in await world.client.list(k.LEASES, "hypershift")}
            return {n: holder_of(found[lease_name(n)]) for n in range(SHARDS)}

        async def shared_out() -> bool:
            return len(set((await held()).values()) - {""}) == 3 and all(len(o.shards()) == 1 for o in world.operators)

        async def conditions(number: int) -> Any:
            return at(await world.client.get(k.HOSTEDCLUSTERS, name_of(number), NAMESPACE), "status.conditions")

        async def available() -> bool:
            return all([is_true(await conditions(n), "Available") for n in range(CLUSTERS)])

        await eventually(shared_out, "each has a shard", seconds=LONG)
        for number in range(CLUSTERS):
            await world.client.create(world.cluster(number))
            await world.client.create(world.pool(number))
        await eventually(available, "all are Available", seconds=LONG)
        first = await held()

        # One is killed, as when its node is lost; a cluster of its shard is edited at once.
        victim = next(one for one in world.operators if 1 in one.shards())
        orphan = next(n for n in range(CLUSTERS) if shard_of(hosted(n), SHARDS) == 1)
        dead = first[1]
        victim.kill()
        world.operators.remove(victim)
        body = {"spec": {"configuration": {"apiServer": {"audit": {"profile": "AllRequestBodies"}}}}}
        before = await world.client.get(k.DEPLOYMENTS, "kube-apiserver", hosted(orphan))
        await world.client.patch(k.HOSTEDCLUSTERS, name_of(orphan), NAMESPACE, body)

        async def applied() -> bool:
            live = await world.client.get(k.DEPLOYMENTS, "kube-apiserver", hosted(orphan))
            return bool(live["metadata"]["generation"] != before["metadata"]["generation"])

        await eventually(applied, "the edit is applied by another process", seconds=LONG)
        after = await held()
        assert dead not in after.values()
        assert {n: who for n, who in after.items() if n != 1} == {n: who for n, who in first.items() if n != 1}

        # One more comes: it is given a shard, and nobody else is touched.
        world.operator("--shards", str(SHARDS))
        await eventually(shared_out, "the new one has a shard", seconds=LONG)
        await eventually(available, "all are Available still")
        written = audit.writes()
        await asyncio.to_thread(stop, [one.popen for one in world.operators])
        world.operators.clear()

    by_cluster: dict[str, list[str]] = defaultdict(list)
    for _, who, ns in written:
        if not by_cluster[ns] or by_cluster[ns][-1] != who:
            by_cluster[ns].append(who)
    # Whoever wrote for a cluster was the only one until the shard changed hands, and never came back.
    for ns, writers in by_cluster.items():
        assert len(writers) == len(set(writers)), (ns, writers)
    assert set(by_cluster) == {hosted(n) for n in range(CLUSTERS)}
    for number in range(CLUSTERS):
        number_of_shard = shard_of(hosted(number), SHARDS)
        assert by_cluster[hosted(number)][0] == first[number_of_shard]
    assert by_cluster[hosted(orphan)][:2] == [dead, after[1]]


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for one in processes:
        one.terminate()
    for one in processes:
        one.wait(60)
