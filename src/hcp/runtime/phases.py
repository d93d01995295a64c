"""One pass as an ordered list of named phases.

A phase reads a scope and returns facts; what it found out becomes part of the scope only when all phases that ran
beside it have ended, so no phase ever sees half of another's work. A critical phase that fails stops those after it,
and they are named as blocked; a non-critical one is reported and the pass goes on, so that one missing side piece
never keeps a control plane from coming up. A phase has one name: in the log, in the metric and in the condition.
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

log = logging.getLogger(__name__)
S = TypeVar("S")

DURATION = metrics.Histogram(
    "hcp_phase_duration_seconds", "Time of one phase, by controller and phase.", ["controller", "phase"]
)
ERRORS = metrics.Counter("hcp_phase_errors_total", "Failed phases, by controller and phase.", ["controller", "phase"])


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a phase found out; a reconciler adds fields of its own."""

    # Seconds until time alone changes something, or until what no watch tells is looked at again.
    again: float | None = None


F = TypeVar("F", bound=Facts)


class Waiting(Exception):
    """Raised by a phase when something else must happen first: later phases wait, and nothing is tried again.

    A watch brings the next pass; where none tells, `again` says in how many seconds to look.
    """

    def __init__(self, message: str, *, again: float | None = None, facts: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.again = again
        self.facts = facts


class Failed(Exception):
    """An error that a phase also has facts to tell about."""

    def __init__(self, error: Exception, facts: Any) -> None:
        super().__init__(str(error))
        self.error = error
        self.facts = facts


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
class Phase(Generic[S, F]):
    """A step of a pass; `always` runs even after a critical failure, for example to collect status."""

    name: str
    run: Callable[[S], Awaitable[F | None]]
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
    again: float | None = None

    @property
    def ok(self) -> bool:
        """Nothing failed and nothing waits."""
        return not self.errors and not self.waiting

    def look_again(self, seconds: float | None) -> None:
        """The soonest wish counts."""
        if seconds is not None:
            self.again = seconds if self.again is None else min(seconds, self.again)

    def raise_if_failed(self) -> None:
        """Raise so that the controller tries again with backoff; a single error is raised as it is."""
        if len(self.errors) == 1 and not self.blocked:
            raise next(iter(self.errors.values()))
        if self.errors:
            raise PhasesFailed(self.errors, self.blocked)


class Phases(Generic[S, F]):
    """Runs phases in order; a sequence of phases at one place runs at the same time."""

    def __init__(
        self, controller: str, steps: Sequence[Phase[S, F] | Sequence[Phase[S, F]]], learn: Callable[[S, F], S]
    ) -> None:
        """`learn` gives the scope that knows these facts too."""
        self._controller = controller
        self._steps = [(step,) if isinstance(step, Phase) else tuple(step) for step in steps]
        self._learn = learn
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError("phase names must differ")

    @property
    def names(self) -> list[str]:
        return [phase.name for step in self._steps for phase in step]

    async def run(self, scope: S, **facts: Any) -> tuple[S, Report]:
        """Run all; the scope that knows everything, and how it went. `facts` go into the log lines."""
        report = Report()
        stopped = False
        for step in self._steps:
            runnable = [p for p in step if not stopped or p.always]
            report.blocked += [p.name for p in step if p not in runnable]
            if len(runnable) == 1:
                learned = [await self._run_one(runnable[0], scope, report, facts)]
            else:
                learned = await asyncio.gather(*(self._run_one(p, scope, report, facts) for p in runnable))
            for found in learned:
                if found is not None:
                    report.look_again(found.again)
                    scope = self._learn(scope, found)
            stopped = stopped or any(p.critical and p.name not in report.done for p in step)
        return scope, report

    async def _run_one(self, phase: Phase[S, F], scope: S, report: Report, facts: dict[str, Any]) -> F | None:
        """What the phase found out, whether it came to its end or not."""
        started = time.monotonic()
        try:
            result = await phase.run(scope)
        except Waiting as waiting:
            report.waiting[phase.name] = waiting
            report.look_again(waiting.again)
            log.debug("phase waits", extra={"phase": phase.name, "for": waiting.message, **facts})
            return waiting.facts  # type: ignore[no-any-return]
        except Failed as failed:
            self._failed(phase, failed.error, report, facts)
            return failed.facts  # type: ignore[no-any-return]
        except Exception as exc:
            self._failed(phase, exc, report, facts)
            return None
        else:
            report.done.append(phase.name)
            return result
        finally:
            seconds = report.seconds[phase.name] = time.monotonic() - started
            DURATION.observe(seconds, controller=self._controller, phase=phase.name)
            log.debug("phase done", extra={"phase": phase.name, "seconds": round(seconds, 4), **facts})

    def _failed(self, phase: Phase[S, F], exc: Exception, report: Report, facts: dict[str, Any]) -> None:
        report.errors[phase.name] = exc
        ERRORS.inc(controller=self._controller, phase=phase.name)
        trace = None if isinstance(exc, HcpError) else exc
        log.log(
            logging.ERROR if trace else logging.INFO,
            "phase failed",
            extra={"phase": phase.name, "critical": phase.critical, "error": str(exc), **facts},
            exc_info=trace,
        )
