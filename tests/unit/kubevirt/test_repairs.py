"""Carrying out what was decided about a sick node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hcp.kube.errors import ApiError, Conflict, Forbidden
from hcp.kubevirt.repair_plan import Plan
from hcp.kubevirt.repairs import Repairs
from hcp.kubevirt.sessions import Sessions

MACHINE = {"metadata": {"name": "vm", "namespace": "clusters-demo", "uid": "m"}}
POOL = {"metadata": {"name": "demo", "namespace": "clusters"}}
RESTART = Plan("Restarting", "was restarted", remember="now/i1/r1", end="i1")


class Asked:
    """Answers like a client and remembers what it was asked."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.calls: list[tuple[str, str]] = []
        self.error = error

    async def patch(self, resource: Any, name: str, ns: str, body: Any) -> Any:
        self.calls.append(("patch", resource.plural))
        return {"metadata": {"name": name, "namespace": ns}}

    async def delete(self, resource: Any, name: str, ns: str, *, uid: str, missing_ok: bool) -> None:
        self.calls.append((f"delete {uid}", resource.plural))
        if self.error is not None:
            raise self.error


async def carry_out(plan: Plan, error: ApiError | None = None) -> tuple[Asked, Asked, list[str]]:
    management, infra, events = Asked(), Asked(error), []
    informer = SimpleNamespace(add_index=lambda *_: None, observe=lambda *_: None)
    recorder = SimpleNamespace(event=lambda _obj, _type, reason, _message: events.append(reason))
    ctx = SimpleNamespace(client=management, events=recorder, informers=SimpleNamespace(get=lambda _kind: informer))
    session = SimpleNamespace(infra=SimpleNamespace(client=infra, namespace="vms"))
    made: Any = Repairs(ctx, Sessions())  # type: ignore[arg-type]
    await made._carry_out(session, POOL, MACHINE, plan)
    return management, infra, events


async def test_a_restart_is_noted_before_it_is_made() -> None:
    management, infra, events = await carry_out(RESTART)
    assert management.calls == [("patch", "machines")]
    assert infra.calls == [("delete i1", "virtualmachineinstances")]
    assert events == ["RestartingNode"]


async def test_an_instance_that_is_another_by_now_was_restarted() -> None:
    management, _, events = await carry_out(RESTART, Conflict("another uid"))
    assert management.calls == [("patch", "machines")]
    assert events == []


async def test_where_a_restart_is_forbidden_the_machine_is_replaced() -> None:
    management, _, events = await carry_out(RESTART, Forbidden("no right"))
    assert management.calls == [("patch", "machines"), ("delete m", "machines")]
    assert events == ["ReplacingNode"]


async def test_waiting_does_nothing() -> None:
    management, infra, events = await carry_out(Plan("Restarting", "was restarted"))
    assert (management.calls, infra.calls, events) == ([], [], [])
