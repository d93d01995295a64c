"""What the suite's report says, in a few lines. Pure: text in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from xml.etree import ElementTree

_SPEC = "[It] "


@dataclass(frozen=True)
class Result:
    """One spec, or one step of the suite's own that failed."""

    name: str
    state: str
    """passed, failed or skipped"""
    seconds: float
    why: str = ""
    cut: bool = False
    """Ended from outside before it had said anything: a run that was cut short."""


@dataclass(frozen=True)
class Report:
    results: tuple[Result, ...]
    unknown: tuple[str, ...] = ()
    """Specs that were asked for and that this suite does not have."""
    seconds: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    code: int = 0
    """How the suite itself ended: a run that was cut short may have no failed spec."""

    @property
    def well(self) -> bool:
        ran = bool(self.states.get("passed")) and not self.states.get("failed")
        return ran and not self.unknown and self.code == 0


def read_junit(text: str, asked: Sequence[str] = (), *, code: int = 0) -> Report:
    """Specs that ran or decided themselves not to. The report also lists thousands that nobody asked for."""
    root = ElementTree.fromstring(text)
    cases = root.findall(".//testcase")
    found = [result for case in cases if (result := _result(case)) is not None]
    known = {str(case.get("name")).removeprefix(_SPEC) for case in cases}
    states = {state: sum(result.state == state for result in found) for state in ("passed", "failed", "skipped")}
    suite = root.find(".//testsuite")
    seconds = float((suite if suite is not None else root).get("time") or 0)
    return Report(tuple(found), tuple(name for name in asked if name not in known), seconds, states, code)


def together(before: Sequence[Result], report: Report) -> Report:
    """One report of a run and of what those before it passed."""
    now = {result.name for result in report.results}
    earlier = tuple(result for result in before if result.name not in now)
    states = {**report.states, "passed": report.states.get("passed", 0) + len(earlier)}
    seconds = report.seconds + sum(result.seconds for result in earlier)
    return replace(report, results=(*earlier, *report.results), states=states, seconds=seconds)


def write_passed(report: Report) -> str:
    """A line for each spec that passed, for `read_passed`."""
    return "".join(f"{one.name}\t{one.seconds:.0f}\n" for one in report.results if one.state == "passed")


def read_passed(text: str) -> tuple[Result, ...]:
    rows = (line.split("\t") for line in text.splitlines())
    return tuple(Result(name, "passed", float(seconds)) for name, seconds in rows)


def _result(case: ElementTree.Element) -> Result | None:
    name, seconds = str(case.get("name")), float(case.get("time") or 0)
    spec = name.startswith(_SPEC)
    for kind in ("failure", "error"):
        if (failure := case.find(kind)) is not None:
            cut = failure.get("type") == "interrupted"
            return Result(name.removeprefix(_SPEC), "failed", seconds, _first_lines(failure), cut)
    if not spec:
        return None  # the suite's own steps are only worth a word when they fail
    if (skipped := case.find("skipped")) is not None:
        _, _, why = str(skipped.get("message")).partition(" - ")
        return Result(name.removeprefix(_SPEC), "skipped", seconds, why) if why else None
    return Result(name.removeprefix(_SPEC), "passed", seconds)


def _first_lines(failure: ElementTree.Element) -> str:
    text = failure.text or failure.get("message") or ""
    return "\n".join(text.strip().splitlines()[:4])


def render(report: Report) -> str:
    order = {"passed": 0, "skipped": 1, "failed": 2}
    lines = []
    for result in sorted(report.results, key=lambda item: (order[item.state], item.name)):
        lines.append(f"{result.state:<8}{result.seconds:>6.0f} s  {result.name}")
        lines += [f"{'':18}{line.strip()}" for line in result.why.splitlines()]
    lines += [f"unknown           {name}" for name in report.unknown]
    if report.code and not report.states.get("failed"):
        lines.append(f"the suite ended with code {report.code}")
    counts = ", ".join(f"{count} {state}" for state, count in report.states.items())
    return "\n".join([*lines, f"{counts} in {report.seconds:.0f} s"])
