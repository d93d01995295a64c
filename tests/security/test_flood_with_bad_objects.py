"""A team writes bad HostedClusters, NodePools, Routes, Secrets, ConfigMaps and annotations without an end.

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

import pytest
from tests.support import crds
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.router import World, running_world
from tests.support.security import bad_objects
from tests.support.security.attacker import RBAC, Attacker, enter
from tests.support.security.good_route import GOOD, loose, serve_good

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.router.crd import route_crd

COUNT = int(os.environ.get("HCP_FLOOD", "240"))
SEED = int(os.environ.get("HCP_FLOOD_SEED", "1"))
MEMORY = 250 << 20
# So many objects are there at a time; what they make the operator write is bounded by it.
AT_ONCE = 40


async def test_others_are_served_and_nothing_is_traced(
    admin: Client, attacker: Attacker, management: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    victim = await enter(admin, management)
    await _let_write_routes(admin, attacker)
    operator = s.OperatorProcess(management)
    dice = random.Random(SEED)
    waits: list[float] = []
    accepted: Counter[str] = Counter()
    sent = peak = 0
    try:
        # The kind of a cluster that checks nothing by itself, so that the router is given all of it.
        async with running_world(admin, victim.namespace, tmp_path, loose(route_crd())) as world:
            await world.service("mine", await world.backend("mine", tls=False), ns=attacker.namespace)
            await serve_good(world)
            haproxy = world.process.pid
            await victim.cluster("good")
            while sent < COUNT:
                made = [_bad(dice, attacker, sent + number) for number in range(min(AT_ONCE, COUNT - sent))]
                taken = await asyncio.gather(*(_send(attacker, obj) for obj in made))
                accepted.update(obj["kind"] for obj, took in zip(made, taken, strict=True) if took)
                sent += len(made)
                waits.append(await _edit(victim, len(waits)))
                await _move(world, len(waits))
                peak = max(peak, _memory(operator.pid))
                await _clear(attacker)
            assert world.process.pid == haproxy, "HAProxy was started again"
        assert not operator.ended
        assert _traces(management.log("operator")) == {}
        assert [record.getMessage() for record in caplog.records if record.exc_info] == [], "the router's tracebacks"
        assert peak < MEMORY
        assert accepted.total() > sent // 10  # else nothing but the schema was tried
        assert {"HostedCluster", "NodePool", "Route", "Secret", "ConfigMap"} <= accepted.keys()
    finally:
        print(f"seed {SEED}: {sent} sent, accepted {dict(accepted)}, peak {peak >> 20} MiB, edits acted on in {waits}")
        operator.kill()
        await victim.client.close()
        await crds.install(admin, [route_crd()])


async def _let_write_routes(admin: Client, attacker: Attacker) -> None:
    inside = {"name": "routes", "namespace": attacker.namespace}
    rules = [{"apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": ["*"]}]
    await admin.apply({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": inside, "rules": rules})
    await admin.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "routes"},
            "subjects": [{"kind": "ServiceAccount", "name": "team", "namespace": attacker.namespace}],
        }
    )


async def _move(world: World, number: int) -> None:
    """A good Route gets another host: it is served there, and the other good one all the while."""
    host = f"moved-{number}.example.com"
    await world.route("moved", "good", host=host)
    await world.reaches(host, "good")
    assert await world.greeting(GOOD) == "good"


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
    kind = dice.choice(["cluster", "cluster", "pool", "pool", "route", "route", "secret", "config"])
    if kind == "cluster":
        return bad_objects.cluster(dice, ns, name)
    if kind == "route":
        return bad_objects.route(dice, ns, name)
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
    for resource in (k.ROUTES, k.NODEPOOLS, k.HOSTEDCLUSTERS, k.SECRETS, k.CONFIGMAPS):
        for obj in await attacker.client.list(resource, attacker.namespace):
            if obj["metadata"]["name"] != "kube-root-ca.crt":
                with suppress(HcpError):
                    await attacker.client.delete(resource, obj["metadata"]["name"], attacker.namespace, missing_ok=True)


def _memory(pid: int) -> int:
    """What the process holds alone, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))
