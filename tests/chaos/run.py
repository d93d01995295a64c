"""`make chaos`: any plug of an embedded cluster is pulled while hosted control planes live on it, and then counted.

FAULTS (200) and SEED (the time) decide everything; the same ones do the same again. NAME is the cluster, which is made
where it is not there, and KEEP=1 leaves it. Ends with 0 when all is as it should be. MACHINES=N: one of the hosted
clusters has so many virtual machines, which are killed, stopped and told another time; without it, there are none.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chaos import audit
from tests.chaos.faults import Faults, NotDone
from tests.chaos.lives import Lives
from tests.chaos.machines import MANNED, Machines
from tests.chaos.plan import DELETE, Deed, Plan, plan, table
from tests.support.e2e.control_planes import NS, available, create
from tests.support.e2e.ledger import writing
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.e2e.next_release import push_next
from tests.support.eventually import eventually

from hcp.kube import Client, ClusterConfig, load_config
from hcp.kube import resources as k
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.runtime.conditions import condition_of

KEPT, CALM = "kept", "calm"
# A machine of two cores that has to start everything anew.
QUIET = 1800


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--name", default="chaos")
    parser.add_argument("--machines", type=int, default=0)
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    there = specs.load(Layout.of(given.name)) is not None
    try:
        problems = asyncio.run(chaos(given.name, given.seed, given.faults, given.machines))
    finally:
        if not there and not given.keep:
            hcp("local", "down", "--name", given.name, "--purge")
    for one in problems:
        print(f"WRONG: {one}")
    print(f"seed {given.seed}, {given.faults} faults: {'all as it should be' if not problems else 'see above'}")
    return 1 if problems else 0


async def chaos(name: str, seed: int, faults: int, number: int = 0) -> list[str]:
    """What is wrong in the end; nothing, if all is well. `number`: of virtual machines."""
    decided = plan(seed, faults, KEPT, machines=number > 0)
    print(f"seed {seed}: {len(decided.faults)} faults, {len(decided.deeds)} deeds", flush=True)
    with tempfile.TemporaryDirectory(prefix="chaos-") as place:
        folder = Path(place)
        management = await asyncio.to_thread(_management, name, folder, "kubevirt" if number else "cluster")
        machines = Machines(management, folder, number) if number else None
        if machines is not None:
            await asyncio.to_thread(machines.create)
            await asyncio.to_thread(machines.wait)
        lives = Lives(management, folder, await push_next(name, folder))
        async with Client(load_config(management.kubeconfig), user_agent="chaos") as client:
            if wrong := await _none(KEPT, lambda: audit.healthy(client, KEPT, lives.image_of(upgraded=False))):
                return wrong
            before = await audit.made_of(client, KEPT)
            run = f"c{int(time.time())}"
            async with AsyncExitStack() as ledgers:
                await ledgers.enter_async_context(writing(load_config(management.kubeconfig), f"{run}-m"))
                await ledgers.enter_async_context(writing(_guest(name, folder, management), f"{run}-h"))
                await _storm(Faults(name, machines.skew if machines else None), lives, decided)
                print("quiet again; waiting until everything is well", flush=True)
                # Inside, so that ledgers are written until the end, and compared with what a healthy API says.
                problems = await _audit(client, lives, decided, before, machines)
            print("every ledger is complete", flush=True)
            return problems


def _management(name: str, folder: Path, profile: str) -> Cluster:
    """The cluster with the operator and a highly available control plane on it."""
    hcp("local", "up", "--name", name, "--profile", profile, "--nodes", "3")
    hcp("local", "push", "--name", name, "image-hcp", "release-1.36")
    found = Cluster(name, folder)
    hcp("install", "--kubeconfig", str(found.kubeconfig), "--wait-until-available")
    found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    create(
        *(found, folder, KEPT, "--control-plane-availability-policy", "HighlyAvailable"),
        publish={"type": "Route"},
    )
    available(found, KEPT)
    return found


def _guest(name: str, folder: Path, management: Cluster) -> ClusterConfig:
    """Through the router, by name, without a resolver."""
    path = folder / "kept.kubeconfig"
    path.write_text(hcp("create", "kubeconfig", "--name", KEPT, "--kubeconfig", str(management.kubeconfig)).stdout)
    spec = specs.load(Layout.of(name))
    assert spec is not None
    config = load_config(path)
    host = config.server.removeprefix("https://").rpartition(":")[0]
    return config.with_server(f"https://{spec.addresses.router}:443", host)


async def _storm(faults: Faults, lives: Lives, decided: Plan) -> None:
    done: Counter[str] = Counter()
    skipped: list[str] = []
    # Deeds on one cluster come one after the other, as from one user; those on others do not wait for them.
    queues: dict[str, asyncio.Task[None]] = {}
    for number, fault in enumerate(decided.faults):
        for deed in decided.deeds:
            if deed.before == number:
                print(f"      {deed.kind} {deed.cluster}", flush=True)
                queues[deed.cluster] = asyncio.create_task(_after(queues.get(deed.cluster), lives, deed, number))
        try:
            hit = await asyncio.to_thread(faults.do, fault)
            done[f"{fault.kind} {fault.part}".strip()] += 1
            print(f"{number + 1:4}  {fault}: {hit}", flush=True)
        except NotDone as why:
            skipped.append(f"{fault}: {why}")
            print(f"{number + 1:4}  {fault}: not done, {why}", flush=True)
        await asyncio.sleep(fault.pause)
    await asyncio.gather(*queues.values())
    print(table(done, skipped), flush=True)


async def _after(former: asyncio.Task[None] | None, lives: Lives, deed: Deed, number: int) -> None:
    if former is not None:
        await former
    await asyncio.to_thread(lives.do, deed, f"{deed.kind}-{number}")


async def _audit(
    client: Client, lives: Lives, decided: Plan, before: set[tuple[str, str]], machines: Machines | None
) -> list[str]:
    """Everything that must hold is waited for; what never came true is told."""
    alive = [KEPT, *([MANNED] if machines else []), *decided.left]

    async def nodes() -> list[str]:
        unready = [one for one in await client.list(k.NODES) if (condition_of(one, "Ready") or {})["status"] != "True"]
        return [f"node {one['metadata']['name']} is not Ready" for one in unready]

    async def clusters() -> list[str]:
        images = {name: lives.image_of(upgraded=name in decided.upgraded) for name in alive}
        return [wrong for name in alive for wrong in await audit.healthy(client, name, images[name])]

    async def yardstick() -> list[str]:
        return await audit.healthy(client, CALM, lives.image_of(upgraded=False))

    async def exact() -> list[str]:
        now = await audit.made_of(client, KEPT)
        wrong = [f"{KEPT}: {'more' if one in now else 'less'} than before: {one}" for one in before ^ now]
        calm = await audit.made_of(client, CALM)
        for name in decided.left:
            found = await audit.made_of(client, name)
            wrong += [f"{name}: {'more' if one in found else 'less'} than {CALM}: {one}" for one in found ^ calm]
        return wrong

    async def single() -> list[str]:
        spaces = [f"{NS}-{name}" for name in (*alive, CALM)]
        return [wrong for ns in (*spaces, "hypershift") for wrong in await audit.doubles(client, ns)]

    problems = await _none("nodes", nodes) + await _none("clusters", clusters)
    if machines is not None:
        problems += await _none("machines", lambda: machines.problems(client))
    # Made in calm weather: what a cluster should consist of.
    await asyncio.to_thread(lives.create, CALM)
    problems += await _none("yardstick", yardstick)
    problems += await _none("objects", exact) + await _none("pods and owners", single)
    await asyncio.to_thread(lives.do, Deed(0, DELETE, CALM), "")
    return problems + await _none("leftovers", lambda: audit.leftovers(client, alive))


async def _none(what: str, look: audit.Look) -> list[str]:
    """Empty as soon as nothing is wrong, else what still is after the longest time."""
    last: list[str] = [f"{what}: could not be looked at"]

    async def nothing() -> bool:
        last[:] = await look()
        return not last

    try:
        await eventually(nothing, what, _pause, seconds=QUIET)
    except AssertionError as error:
        return last or [str(error)]
    print(f"  {what}: as they should be", flush=True)
    return []


async def _pause() -> None:
    await asyncio.sleep(2)


if __name__ == "__main__":
    sys.exit(main())
