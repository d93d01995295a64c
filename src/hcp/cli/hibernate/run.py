"""`hibernate` and `wake`: ask by annotation, then follow the condition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.shared import health
from hcp.cli.shared.cluster import connect
from hcp.cli.shared.kubeconfigs import find_cluster
from hcp.cli.shared.progress import wait_until
from hcp.cli.shared.watched import Watched
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS
from hcp.runtime import hibernation

Object = dict[str, Any]
_SCHEDULE = {
    "schedule": names.ANNOTATION_HIBERNATE_SCHEDULE,
    "wake-schedule": names.ANNOTATION_WAKE_SCHEDULE,
    "time-zone": names.ANNOTATION_HIBERNATE_TIME_ZONE,
}


async def hibernate(call: Call) -> int:
    name, plan = _name(call), _plan(call)
    async with connect(call) as client:
        found = await _found(client, call, name)
        now = dt.datetime.now(dt.UTC)
        on_request = _on_request(call, found)
        if plan is None:
            values = {names.ANNOTATION_HIBERNATE: hibernation.asked(True, now)}
            await _annotate(client, call, name, {**values, **on_request})
            print(f"HostedCluster {name}: falls asleep{_request_words(found, on_request)}", flush=True)
            if call.switch("wait"):
                await _wait(client, call, name, asleep=True)
            return 0
        await _annotate(client, call, name, {**plan, names.ANNOTATION_HIBERNATE: None, **on_request})
        wish = hibernation.wish({key: value for key, value in plan.items() if value}, now)
        words = "" if call.switch("no-schedule") else _request_words(found, on_request)
        print(f"HostedCluster {name}: {_next(wish, planned=not call.switch('no-schedule'))}{words}", flush=True)
        if call.switch("wait") and (wish.asleep or hibernation.stage(found)):
            await _wait(client, call, name, asleep=wish.asleep)
    return 0


async def wake(call: Call) -> int:
    name = _name(call)
    async with connect(call) as client:
        found = await _found(client, call, name)
        told = annotations_of(found)
        planned = names.ANNOTATION_HIBERNATE_SCHEDULE in told
        if not planned and names.ANNOTATION_HIBERNATE not in told and hibernation.stage(found) in ("", c.AWAKE):
            print(f"HostedCluster {name}: does not sleep")
            return 0
        # A schedule would put it to sleep again at once if nobody had said when this was asked.
        said = hibernation.asked(False, dt.datetime.now(dt.UTC)) if planned else None
        await _annotate(client, call, name, {names.ANNOTATION_HIBERNATE: said})
        print(f"HostedCluster {name}: wakes up", flush=True)
        if call.switch("wait"):
            await _wait(client, call, name, asleep=False)
    return 0


def _name(call: Call) -> str:
    given, named = call.arg("NAME"), call.text("name")
    if bool(given) == bool(named):
        raise UsageError("the hosted cluster must be named once", hint="write its name, or --name and its name")
    return given or named


def _plan(call: Call) -> dict[str, str | None] | None:
    """The schedule that is asked for; None where it is not about one."""
    if call.switch("no-schedule"):
        return dict.fromkeys(_SCHEDULE.values())
    if not any(call.changed(flag) for flag in _SCHEDULE):
        return None
    given = {annotation: call.text(flag) for flag, annotation in _SCHEDULE.items()}
    for flag in ("schedule", "wake-schedule"):
        if not call.text(flag):
            raise UsageError(f"--{flag} is missing", hint="a schedule says both when to sleep and when to wake")
    hibernation.read_schedules(given)
    return dict(given)


def _next(wish: hibernation.Wish, *, planned: bool) -> str:
    if not planned or wish.until is None:
        return "has no schedule any more"
    when = f"{wish.until:%Y-%m-%dT%H:%M:%SZ}"
    return f"falls asleep now and wakes at {when}" if wish.asleep else f"is awake and falls asleep at {when}"


def _on_request(call: Call, found: Object) -> dict[str, str | None]:
    """What the flag asks for; nothing where it is not given, so that a schedule keeps it."""
    if not call.changed("wake-on-request"):
        return {}
    if not call.switch("wake-on-request"):
        return {names.ANNOTATION_WAKE_ON_REQUEST: None}
    how = _published(found)
    if how != "Route":
        raise HcpError(
            f"the API of {call.text('namespace')}/{call.arg('NAME') or call.text('name')} is published by {how}: "
            "nobody would see requests while it sleeps",
            hint="clusters made with --publish route can be woken by a request; others by hcp wake or a schedule",
        )
    return {names.ANNOTATION_WAKE_ON_REQUEST: "true"}


def _published(found: Object) -> str:
    services: list[Object] = found["spec"].get("services") or []
    types = [at(one, "servicePublishingStrategy.type") for one in services if one.get("service") == "APIServer"]
    return str(next(filter(None, types), "Route"))


def _request_words(found: Object, asked: dict[str, str | None]) -> str:
    """Said each time: who sets it once may have forgotten it."""
    merged = {**annotations_of(found), **asked}
    holds = merged.get(names.ANNOTATION_WAKE_ON_REQUEST) == "true"
    return "; the first request to its API wakes it" if holds else ""


async def _found(client: Client, call: Call, name: str) -> Object:
    found = await find_cluster(client, call.prog, call.text("namespace"), name)
    if found["metadata"].get("deletionTimestamp"):
        raise HcpError(f"hosted cluster {call.text('namespace')}/{name} is being deleted")
    return found


async def _annotate(client: Client, call: Call, name: str, values: Mapping[str, str | None]) -> None:
    """What is asked now holds from now on: a request that woke it before counts no longer."""
    body = {"metadata": {"annotations": {names.ANNOTATION_WOKEN: None, **values}}}
    await client.patch(HOSTEDCLUSTERS, name, call.text("namespace"), body, manager=names.CLI_FIELD_MANAGER)


async def _wait(client: Client, call: Call, name: str, *, asleep: bool) -> None:
    namespace = call.text("namespace")
    watched = Watched(HOSTEDCLUSTERS, namespace, name)

    def judge() -> tuple[bool, str]:
        found = watched.one()
        if found is None:
            raise HcpError(f"hosted cluster {namespace}/{name} is gone")
        return _judge(found, asleep=asleep)

    again = f"{call.prog} status {name} -n {namespace} tells how far it is"
    await wait_until(
        client,
        [watched],
        judge,
        late=f"hosted cluster {namespace}/{name} is not {'asleep' if asleep else 'awake'}",
        seconds=call.seconds("timeout"),
        hint=again,
        again=again,
    )


def _judge(found: Object, *, asleep: bool) -> tuple[bool, str]:
    stage = hibernation.stage(found)
    text = str((health.condition(found, c.HIBERNATING) or {}).get("message") or "not taken up by the operator yet")
    if not asleep and stage == c.WAKING_UP and not health.is_true(found, c.AVAILABLE):
        text = f"{text}: {health.control_plane_line(found)}"
    return stage == (c.ASLEEP if asleep else c.AWAKE), text
