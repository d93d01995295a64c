"""A team writes bad HostedClusters, NodePools, Secrets, ConfigMaps and annotations without an end.

`HCP_FLOOD=2000` sends more of them; the seed is printed with what failed.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.security import bad_objects
from tests.support.security.attacker import Attacker, enter

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as k

COUNT = int(os.environ.get("HCP_FLOOD", "240"))
SEED = int(os.environ.get("HCP_FLOOD_SEED", "1"))
MEMORY = 250 << 20
# So many objects are there at a time; what they make the operator write is bounded by it.
AT_ONCE = 40


async def test_others_are_served_and_nothing_is_traced(
    admin: Client, attacker: Attacker, management: ApiServer
) -> None:
    victim = await enter(admin, management)
    operator = s.OperatorProcess(management)
    dice = random.Random(SEED)
    waits: list[float] = []
    accepted = sent = peak = 0
    try:
        await victim.cluster("good")
        while sent < COUNT:
            made = [_bad(dice, attacker, sent + number) for number in range(min(AT_ONCE, COUNT - sent))]
            accepted += sum(await asyncio.gather(*(_send(attacker, obj) for obj in made)))
            sent += len(made)
            waits.append(await _edit(victim, len(waits)))
            peak = max(peak, _memory(operator.pid))
            await _clear(attacker)
        assert not operator.ended
        assert _traces(management.log("operator")) == {}
        assert peak < MEMORY
        assert accepted > sent // 10  # else nothing but the schema was tried
    finally:
        print(f"seed {SEED}: {sent} sent, {accepted} accepted, peak {peak >> 20} MiB, edits acted on in {waits}")
        operator.kill()
        await victim.client.close()


def _traces(log: str) -> Counter[str]:
    """Where tracebacks came from: file, line and error, with how often."""
    found: Counter[str] = Counter()
    for trace in log.split("Traceback (most recent call last):")[1:]:
        lines = trace.splitlines()
        ours = [line.strip() for line in lines if "/hcp/" in line and line.strip().startswith("File")]
        error = next((line for line in lines[1:] if line and not line.startswith(" ")), "")
        found[f"{ours[-1] if ours else ''} {error}"] += 1
    return found


def _bad(dice: random.Random, attacker: Attacker, number: int) -> bad_objects.Object:
    ns, name = attacker.namespace, f"bad-{number}"
    kind = dice.choice(["cluster", "cluster", "pool", "pool", "pool", "secret", "config"])
    if kind == "cluster":
        return bad_objects.cluster(dice, ns, name)
    if kind == "pool":
        near = max(0, number - dice.randrange(AT_ONCE))
        return bad_objects.pool(dice, ns, name, f"bad-{near}", f"bad-{near}")
    # Named as what the clusters refer to, so that they are read.
    target = dice.choice([name, "demo-pull-secret", f"bad-{number}-etcd-encryption-key"])
    return (bad_objects.secret if kind == "secret" else bad_objects.config_map)(dice, ns, target)


async def _send(attacker: Attacker, obj: bad_objects.Object) -> bool:
    try:
        await attacker.client.create(obj)
    except HcpError:
        return False
    return True


async def _edit(victim: Attacker, number: int) -> float:
    """A good cluster is changed; how long until its status speaks about the change."""
    channel = {"spec": {"channel": f"stable-{number}"}}
    live = await victim.client.patch(k.HOSTEDCLUSTERS, "good", victim.namespace, channel)
    began = time.monotonic()
    generation = live["metadata"]["generation"]

    async def seen() -> bool:
        condition = await victim.condition("good", "AllFieldsHonoured")
        return int(condition.get("observedGeneration") or 0) >= int(generation)

    await eventually(seen, "a good cluster's edit is acted on")
    return round(time.monotonic() - began, 1)


async def _clear(attacker: Attacker) -> None:
    """The attacker tidies up, so that the next ones find room; deletion is part of the attack."""
    for resource in (k.NODEPOOLS, k.HOSTEDCLUSTERS, k.SECRETS, k.CONFIGMAPS):
        for obj in await attacker.client.list(resource, attacker.namespace):
            if obj["metadata"]["name"] != "kube-root-ca.crt":
                with suppress(HcpError):
                    await attacker.client.delete(resource, obj["metadata"]["name"], attacker.namespace, missing_ok=True)


def _memory(pid: int) -> int:
    """What the process holds alone, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))
