"""Which specs of the storage suite run, in which order, and what came of them. Pure; runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

import yaml
from conformance.report import Result

GROUPS = (
    "provisioning",
    "volumes",
    "volumeMode",
    "volume-expand",
    "snapshottable",
    "multiVolume",
    "subPath",
    "fsgroupchangepolicy",
)
# Volumes that somebody else made, volumes without a claim, and ntfs are nothing that the class announces. Disruptive
# specs stop a kubelet over SSH, which nodes do not have; serial ones are of other groups.
SKIP = r"Pre-provisioned PV|Inline-volume|CSI Ephemeral-volume|\(ntfs\)|\[Disruptive\]|\[Serial\]"
# With volumes of several nodes: a pod that has a block volume and files at once wants the files shared, too.
SKIP_SHARED = rf"{SKIP}|with different volume mode"
_NAME = re.compile(r"External.Storage.*\[Testpattern: (?P<pattern>.*?)\] (?P<group>[\w-]+)")
# Claims that a pod brings along itself take the same way through the driver as all others.
_LAST = "Generic Ephemeral-volume"
STATES = ("passed", "failed", "skipped")


def focus(driver: str, groups: Iterable[str], *, shared: bool = False) -> str:
    """An expression for all specs of these groups; `shared`: those with block volumes."""
    block = r"\(block volmode\).*" if shared else ""
    return rf"External.Storage.*{re.escape(driver)}.*{block}\] ({'|'.join(groups)}) "


def shared_driver(text: str) -> str:
    """What the suite may expect where every claim is for several nodes.

    It knows one answer for a driver, whatever a claim is of: several nodes share block volumes here, and no files.
    """
    found = yaml.safe_load(text)
    found["DriverInfo"]["RequiredAccessModes"] = ["ReadWriteMany"]
    # A claim that is also for one pod only is no claim for several nodes.
    found["DriverInfo"]["Capabilities"] |= {"RWX": True, "readWriteOncePod": False}
    return yaml.safe_dump(found, sort_keys=False)


def group_of(name: str) -> str:
    found = _NAME.search(name)
    return found["group"] if found else ""


def order(names: Iterable[str], groups: Sequence[str] = GROUPS) -> list[str]:
    """One spec of each group in turns, so that a run that is cut short says something about all of them."""
    columns: dict[str, list[str]] = {group: [] for group in groups}
    for name in sorted(names, key=lambda name: (_LAST in name, name)):
        if (group := group_of(name)) in columns:
            columns[group].append(name)
    return [name for row in zip_longest(*columns.values()) for name in row if name is not None]


def pending(names: Iterable[str], known: Mapping[str, Result], *, failed_too: bool = False) -> list[str]:
    """What still has to run."""
    again = ("failed",) if failed_too else ()
    return [name for name in names if name not in known or known[name].state in again]


def table(names: Sequence[str], known: Mapping[str, Result], groups: Sequence[str] = GROUPS) -> str:
    """A line for each group, and one for all; specs that were not run are counted too.

    The last column: how many passed of those that apply, which are all that did not decide to be skipped.
    """
    lines = [f"{'':<22}{'specs':>6}{'passed':>8}{'failed':>8}{'skipped':>9}{'not run':>9}{'of applying':>13}"]
    for title, chosen in (*((one, [n for n in names if group_of(n) == one]) for one in groups), ("together", names)):
        states = [known[name].state if name in known else "" for name in chosen]
        passed, failed, skipped = (states.count(state) for state in STATES)
        rest = len(chosen) - passed - failed - skipped
        share = percent(passed, len(chosen) - skipped)
        lines.append(f"{title:<22}{len(chosen):>6}{passed:>8}{failed:>8}{skipped:>9}{rest:>9}{share:>13}")
    return "\n".join(lines)


def percent(part: int, whole: int) -> str:
    """Rounded down: only all of them are 100%."""
    return f"{100 * part // whole}%" if whole else "-"


def reasons(known: Mapping[str, Result]) -> str:
    """What went wrong, and why specs decided not to run."""
    lines = []
    for state in ("skipped", "failed"):
        for name in sorted(name for name, one in known.items() if one.state == state):
            why = " ".join(known[name].why.split())[:300]
            lines.append(f"{state}  {name}\n        {why}")
    return "\n".join(lines)
