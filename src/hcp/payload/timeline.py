"""When each component was made, how long it waited and how much of the machine it used: kept, and shown as bars.

One line per component in `<cache>/timeline/builds.jsonl`, whichever command made it: a tour is one picture.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hcp.payload.progress import duration

FILE = "timeline/builds.jsonl"
_KEPT = 1000
_APART = 900.0  # seconds without any build between two runs that are told apart
_BARS = 48


@dataclass(frozen=True)
class Span:
    """One component: times are seconds since 1970, `cpu` seconds of one core, `idle` of all cores while it was made."""

    component: str
    how: str
    start: float
    end: float
    waited: float
    """Seconds since everything it is made of was there: for a free lane, or for another run that was making it."""
    cpu: float
    idle: float
    cores: int

    @property
    def seconds(self) -> float:
        return self.end - self.start


def idle_seconds() -> float:
    """Core-seconds in which this machine had nothing to do since it was started; 0 where the kernel does not say."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def keep(root: Path, span: Span) -> None:
    """Adds a line; what several commands write at once does not mix, and the file does not grow for ever."""
    path = root / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        handle.write(json.dumps(asdict(span)) + "\n")
    if path.stat().st_size > _KEPT * 400:
        newest = path.read_text().splitlines()[-_KEPT // 2 :]
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text("\n".join(newest) + "\n")
        temporary.rename(path)


def kept(root: Path, since: float = 0.0) -> list[Span]:
    """What was kept, oldest first; lines of another version of hcp are passed over."""
    try:
        lines = (root / FILE).read_text().splitlines()
    except OSError:
        return []
    spans = []
    for line in lines:
        try:
            span = Span(**json.loads(line))
        except (ValueError, TypeError):
            continue
        if span.end >= since:
            spans.append(span)
    return sorted(spans, key=lambda span: (span.start, span.end))


def last_run(spans: Sequence[Span]) -> list[Span]:
    """The newest spans up to a pause in which nothing was built."""
    run: list[Span] = []
    for span in sorted(spans, key=lambda item: item.end, reverse=True):
        if run and min(item.start for item in run) - span.end > _APART:
            break
        run.append(span)
    return sorted(run, key=lambda item: (item.start, item.end))


def text(spans: Sequence[Span]) -> str:
    """A picture of a run: a bar per component, and how much of the machine was used."""
    if not spans:
        return "Nothing was built yet."
    began, ended = min(span.start for span in spans), max(span.end for span in spans)
    whole = max(ended - began, 0.001)
    width = max(len(span.component) for span in spans)
    day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began))
    lines = [f"Timeline of builds, from {day}, {duration(whole)}"]
    for span in spans:
        note = f", waited {duration(span.waited)}" if span.waited >= 1 else ""
        lines.append(
            f"  {span.component:<{width}} |{_bar(span, began, whole)}| {duration(span.start - began):>6} "
            f"+ {duration(span.seconds):<6} cpu {duration(span.cpu)}{note}"
        )
    cores, cpu = max(span.cores for span in spans), sum(span.cpu for span in spans)
    lines.append(
        f"  {cores} cores: {duration(cpu)} of their {duration(whole * cores)} went into builds "
        f"({cpu / whole / cores:.0%}); idle while something was built: {duration(_idle(spans))}"
    )
    return "\n".join(lines)


def _bar(span: Span, began: float, whole: float) -> str:
    first = int((span.start - began) / whole * _BARS)
    last = max(first + 1, round((span.end - began) / whole * _BARS))
    return " " * first + "█" * (last - first) + " " * (_BARS - last)


def _idle(spans: Iterable[Span]) -> float:
    """Idle time of spans that overlap is counted once, by the share of the time that no earlier one covers."""
    total, covered = 0.0, 0.0
    for span in sorted(spans, key=lambda item: (item.start, -item.end)):
        if span.end > covered and span.seconds > 0:
            total += span.idle * (span.end - max(span.start, covered)) / span.seconds
            covered = span.end
    return total
