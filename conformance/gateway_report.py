"""What the Gateway API's tests said, and whether that is what is known of them. Pure: text in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

_ROOT = "TestConformance/"
_END = re.compile(r"^\s*--- (PASS|FAIL|SKIP): TestConformance/(\S+) \(([\d.]+)s\)")
_BEGIN = re.compile(r"^=== (?:RUN|NAME|CONT)\s+TestConformance/([^/\s]+)")
_FEATURES = re.compile(r"Running (\w+), relying on the following features: (.+)$")
_UNSUPPORTED = re.compile(r"Skipping (\w+): (.+)$")
_ERROR = re.compile(r"^\s+(?:Error|Messages):\s+(.+)$")
_STATES = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
# What every test of a kind of routes stands on.
CORE = ("Gateway", "ReferenceGrant", "HTTPRoute", "TLSRoute")
_SHOWN = 4


@dataclass(frozen=True)
class Test:
    """One test with all its parts."""

    name: str
    state: str = "failed"
    seconds: float = 0.0
    features: tuple[str, ...] = ()
    why: tuple[str, ...] = ()

    @property
    def feature(self) -> str:
        """The one that sets it apart."""
        beyond = [one for one in self.features if one not in CORE]
        routes = [one for one in ("TLSRoute", "HTTPRoute") if one in self.features]
        return (beyond or routes or ["Gateway"])[0]


@dataclass
class _Being:
    found: dict[str, Test] = field(default_factory=dict)
    current: str = ""

    def note(self, name: str, **said: object) -> None:
        self.found[name] = replace(self.found.get(name, Test(name)), **said)  # type: ignore[arg-type]

    def why(self, name: str, line: str) -> None:
        known = self.found.get(name, Test(name)).why
        if line not in known and len(known) < _SHOWN:
            self.note(name, why=(*known, line))


def read(log: str) -> list[Test]:
    """All tests that a log tells of, in their order. One that has no end counts as failed."""
    being = _Being()
    for line in log.splitlines():
        if match := _BEGIN.match(line):
            being.current = match[1]
            being.found.setdefault(being.current, Test(being.current))
        elif match := _END.match(line):
            name, _, part = match[2].partition("/")
            if not part:
                being.note(name, state=_STATES[match[1]], seconds=float(match[3]))
            elif match[1] == "FAIL":
                being.why(name, part.replace("_", " "))
        elif match := _FEATURES.search(line):
            being.note(match[1], features=tuple(one.rpartition("-")[0] for one in match[2].split(", ")))
        elif match := _UNSUPPORTED.search(line):
            being.note(match[1], why=(match[2],))
        elif being.current and (match := _ERROR.match(line)):
            being.why(being.current, match[1].strip())
    return list(being.found.values())


def read_known(text: str) -> dict[str, str]:
    """Names of tests that cannot pass, and why. Lines that begin with `#` are for readers."""
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {name: why for name, _, why in (line.partition("\t") for line in lines)}


def write(tests: Iterable[Test]) -> str:
    """A line for each: its state, seconds, what it is about, its name."""
    return "".join(f"{one.state}\t{one.seconds:.0f}\t{one.feature}\t{one.name}\n" for one in tests)


def surprises(tests: Iterable[Test], known: Mapping[str, str]) -> list[str]:
    """What is not as the table says: failures that it does not have, and names in it that pass."""
    found = []
    for one in tests:
        if one.state == "failed" and one.name not in known:
            found.append(f"failed, and should pass: {one.name}")
        if one.state == "passed" and one.name in known:
            found.append(f"passed, so it is no known failure any more: {one.name}")
    return found


def render(tests: list[Test], known: Mapping[str, str]) -> str:
    """For people: what failed and why, counts for each feature, and what is not as it should be."""
    lines = []
    for one in tests:
        if one.state == "failed":
            lines.append(f"failed {one.seconds:5.0f} s  {one.name}")
            lines += [f"{'':16}{text}" for text in ([f"known: {known[one.name]}"] if one.name in known else one.why)]
    counts: dict[str, dict[str, int]] = {}
    for one in tests:
        of = counts.setdefault(one.feature, {}) if one.state != "skipped" else {}
        of[one.state] = of.get(one.state, 0) + 1
    for feature, of in sorted(counts.items()):
        lines.append(f"{feature}: {of.get('passed', 0)} of {sum(of.values())}")
    states = {state: sum(one.state == state for one in tests) for state in _STATES.values()}
    lines.append(", ".join(f"{count} {state}" for state, count in states.items()))
    return "\n".join([*lines, *surprises(tests, known)])
