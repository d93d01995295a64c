"""One pass as an ordered list of named phases.

A critical phase that fails stops the ones after it, and they are named as blocked; a non-critical one is reported and
the pass goes on, so that one missing side piece never keeps a control plane from coming up. Each phase's name is the
one in the log, in the metric and in the condition.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hcp.errors import HcpError
from hcp.runtime import metrics
from hcp.runtime.controller import Result

log = logging.getLogger(__name__)
S = TypeVar("S")

DURATION = metrics.Histogram(
    "hcp_phase_duration_seconds", "Time of one phase, by controller and phase.", ["controller", "phase"]
)
ERRORS = metrics.Counter("hcp_phase_errors_total", "Failed phases, by controller and phase.", ["controller", "phase"])


class Waiting(Exception):
    """Raised by a phase when something else must happen first and a watch will tell: later phases wait, no retry."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class PhasesFailed(HcpError):
    """Some phases failed; the text names them."""

    def __init__(self, errors: dict[str, Exception], blocked: Sequence[str]) -> None:
        texts = [f"{name}: {exc}" for name, exc in errors.items()]
        hints = [exc.hint for exc in errors.values() if isinstance(exc, HcpError) and exc.hint]
        sentence = "; ".join(texts)
        if blocked:
            sentence += f" (not tried: {', '.join(blocked)})"
        super().__init__(sentence, hint=" ".join(dict.fromkeys(hints)) or None)
        self.errors = errors
        self.blocked = list(blocked)


@dataclass(frozen=True)
class Phase(Generic[S]):
    """A step of a pass; `always` runs even after a critical failure, for example to collect status."""

    name: str
    run: Callable[[S], Awaitable[Result | None]]
    critical: bool = True
    always: bool = False


@dataclass
class Report:
    """How a pass went."""

    done: list[str] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    blocked: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    requeue_after: float | None = None

    @property
    def ok(self) -> bool:
        """Nothing failed and nothing waits."""
        return not self.errors and not self.waiting

    @property
    def result(self) -> Result | None:
        return None if self.requeue_after is None else Result(self.requeue_after)

    def raise_if_failed(self) -> None:
        """Raise so that the controller tries again with backoff; a single error is raised as it is."""
        if len(self.errors) == 1 and not self.blocked:
            raise next(iter(self.errors.values()))
        if self.errors:
            raise PhasesFailed(self.errors, self.blocked)


class Phases(Generic[S]):
    """Runs phases in order; a sequence of phases at one place runs at the same time."""

    def __init__(self, controller: str, steps: Sequence[Phase[S] | Sequence[Phase[S]]]) -> None:
        self._controller = controller
        self._steps = [(step,) if isinstance(step, Phase) else tuple(step) for step in steps]
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError("phase names must differ")

    @property
    def names(self) -> list[str]:
        return [phase.name for step in self._steps for phase in step]

    async def run(self, scope: S, **facts: Any) -> Report:
        """Run all over one scope; `facts` go into the log lines."""
        report = Report()
        stopped = False
        for step in self._steps:
            runnable = [p for p in step if not stopped or p.always]
            report.blocked += [p.name for p in step if p not in runnable]
            if len(runnable) == 1:
                await self._run_one(runnable[0], scope, report, facts)
            else:
                await asyncio.gather(*(self._run_one(p, scope, report, facts) for p in runnable))
            stopped = stopped or any(p.critical and p.name not in report.done for p in step)
        return report

    async def _run_one(self, phase: Phase[S], scope: S, report: Report, facts: dict[str, Any]) -> None:
        started = time.monotonic()
        try:
            result = await phase.run(scope)
        except Waiting as waiting:
            report.waiting[phase.name] = waiting
            log.debug("phase waits", extra={"phase": phase.name, "for": waiting.message, **facts})
        except Exception as exc:
            report.errors[phase.name] = exc
            ERRORS.inc(controller=self._controller, phase=phase.name)
            trace = None if isinstance(exc, HcpError) else exc
            log.log(
                logging.ERROR if trace else logging.INFO,
                "phase failed",
                extra={"phase": phase.name, "critical": phase.critical, "error": str(exc), **facts},
                exc_info=trace,
            )
        else:
            report.done.append(phase.name)
            if result is not None and result.requeue_after is not None:
                soonest = report.requeue_after
                report.requeue_after = min(result.requeue_after, soonest if soonest is not None else float("inf"))
        finally:
            seconds = report.seconds[phase.name] = time.monotonic() - started
            DURATION.observe(seconds, controller=self._controller, phase=phase.name)
            log.debug("phase done", extra={"phase": phase.name, "seconds": round(seconds, 4), **facts})
