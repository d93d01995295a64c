"""Tuned documents of a pool's `tuningConfig`, as OpenShift's node tuning takes them.

There the daemon Tuned runs on every node and knows many plugins. Here the settings that are only values are followed:
`[sysctl]`, the scheduler's options in `[scheduler]`, and kernel arguments in `[bootloader]`. Everything else is told to
the pool's owner by name. One profile holds for a pool: the one that `recommend` gives the lowest priority number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.errors import HcpError
from hcp.ignition import kernel_arguments
from hcp.ignition.document import Document, document, file, unit
from hcp.kube import bounded_yaml

NAME = "50-tuning"
SYSCTL = "/etc/sysctl.d/95-tuning.conf"
SCHEDULER = "/etc/hcp/scheduler"
SCHEDULER_UNIT = "scheduler-options.service"
_MOST = 500
_KEY = re.compile(r"(abi|debug|dev|fs|kernel|net|user|vm)[./][A-Za-z0-9_.:/@-]{1,200}")
_VARIABLE = re.compile(r"\$\{([A-Za-z0-9_]+)\}")
# Names of Tuned (and of sysctl, before kernel 5.13) → file below debugfs' sched/.
_SCHEDULER = {
    f"sched_{name}": name
    for name in (
        *("latency_ns", "min_granularity_ns", "idle_min_granularity_ns", "wakeup_granularity_ns"),
        *("migration_cost_ns", "nr_migrate", "tunable_scaling"),
    )
} | {
    f"numa_balancing_{name}": f"numa_balancing/{name}"
    for name in ("scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms", "scan_size_mb")
}

# One process: each that a unit starts has mounts of its own, and the next one would not see what was mounted.
_WRITE = """\
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug; \
while read -r name value; do echo "$$value" >"/sys/kernel/debug/sched/$$name" || bad=1; done; exit "$${bad:-0}"\
"""
_UNIT = f"""\
[Unit]
Description=Options of the kernel's scheduler from the pool's tuning
ConditionPathExists={SCHEDULER}
After=local-fs.target
Before=containerd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
PrivateMounts=yes
StandardInput=file:{SCHEDULER}
ExecStart=sh -c '{_WRITE}'

[Install]
WantedBy=multi-user.target
"""


@dataclass
class Tuning:
    """What a pool's profile asks for and nodes follow."""

    sysctl: dict[str, str] = field(default_factory=dict)
    scheduler: dict[str, str] = field(default_factory=dict)
    kernel_arguments: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not (self.sysctl or self.scheduler or self.kernel_arguments)


@dataclass(frozen=True)
class _Recommended:
    priority: int
    profile: str
    origin: str


def read_tuning(texts: Mapping[str, str]) -> Tuning:
    """`texts`: the key `tuning` of each ConfigMap by its name."""
    found, profiles, recommended = Tuning(), dict[str, str](), list[_Recommended]()
    for name in sorted(texts):
        origin = f"ConfigMap {name!r}"
        try:
            for manifest in bounded_yaml.load(texts[name], origin, max_bytes=1 << 20):
                if manifest is not None:
                    _collect(manifest, origin, found, profiles, recommended)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise HcpError(
                f"{origin} has a Tuned that does not have the shape of its kind", cause=repr(error)
            ) from error
    if not recommended:
        found.without_effect += ["no profile is recommended for all nodes of the pool"] if texts else []
        return found
    recommended.sort(key=lambda item: item.priority)
    chosen = recommended[0]
    for other in recommended[1:]:
        if other.profile != chosen.profile:
            found.without_effect.append(f"profile {other.profile} (profile {chosen.profile} comes before it)")
    _follow(chosen.profile, profiles, found, chosen.origin, ())
    if len(found.sysctl) + len(found.scheduler) > _MOST:
        raise HcpError(f"the profile {chosen.profile!r} has more than {_MOST} settings")
    return found


def tuning_document(tuning: Tuning) -> Document:
    """The files and the unit; kernel arguments are a field of the MachineConfig around it."""
    files, units = [], []
    if tuning.sysctl:
        files.append(file(SYSCTL, _lines(tuning.sysctl, " = ")))
    if tuning.scheduler:
        files.append(file(SCHEDULER, _lines(tuning.scheduler, " ")))
        units.append(unit(SCHEDULER_UNIT, _UNIT))
    return document(files=files, units=units)


def _lines(values: Mapping[str, str], between: str) -> str:
    return "".join(f"{key}{between}{values[key]}\n" for key in sorted(values))


def _collect(
    manifest: Any, origin: str, found: Tuning, profiles: dict[str, str], recommended: list[_Recommended]
) -> None:
    kind = manifest.get("kind")
    if kind == "PerformanceProfile":
        found.without_effect.append(f"the PerformanceProfile of {origin}")
        return
    if kind != "Tuned":
        raise HcpError(f"{origin} holds a {str(kind)[:80]!a}, which tunes no node", hint="use Tuned")
    spec = manifest.get("spec") or {}
    for profile in spec.get("profile") or []:
        name, data = profile["name"], profile["data"]
        if not isinstance(name, str) or not isinstance(data, str):
            raise TypeError(f"profile {name!r} has no text")
        profiles[name] = data
    for entry in spec.get("recommend") or []:
        name, priority = entry["profile"], entry.get("priority", 0)
        if not isinstance(name, str) or not isinstance(priority, int):
            raise TypeError(f"recommend has {entry!r}")
        if entry.get("match") or entry.get("machineConfigLabels"):
            found.without_effect.append(f"recommend of {name[:80]} (a pool's tuning is for all of its nodes: no match)")
        else:
            recommended.append(_Recommended(priority, name, origin))


def _follow(name: str, profiles: Mapping[str, str], found: Tuning, origin: str, below: tuple[str, ...]) -> None:
    """Take a profile's settings, after those of the profiles it includes."""
    if name not in profiles:
        found.without_effect.append(f"profile {name[:80]} (not in the ConfigMaps)")
        return
    if name in below or len(below) > 10:
        raise HcpError(f"{origin} has the profile {name!r}, which includes itself")
    sections = _sections(profiles[name], f"{origin}, profile {name!r}")
    main = sections.pop("main", {})
    for parent in re.split(r"[,;]", main.get("include", "")):
        if parent.strip():
            _follow(parent.strip(), profiles, found, origin, (*below, name))
    variables = sections.pop("variables", {})
    for section, values in sections.items():
        for key, text in values.items():
            value = _VARIABLE.sub(lambda hit: variables.get(hit[1], hit[0]), text)
            if not _take(section, key, value, found, origin):
                found.without_effect.append(f"[{section[:40]}] {key[:80]} of profile {name[:80]}")


def _take(section: str, key: str, value: str, found: Tuning, origin: str) -> bool:
    """Whether the setting is followed; a value that Tuned would compute on the node is not."""
    if "${" in value or not value.isprintable() or len(value) > 1024:
        return False
    if section == "bootloader" and key.startswith("cmdline"):
        if value.startswith("-"):
            return False
        found.kernel_arguments += kernel_arguments.words([value.removeprefix("+")], origin)
        return True
    option = _SCHEDULER.get(key.removeprefix("kernel.")) if section in ("sysctl", "scheduler") else None
    if option:
        if not re.fullmatch(r"[0-9]{1,18}", value):
            return False
        found.scheduler[option] = value
        return True
    if section != "sysctl" or not _KEY.fullmatch(key) or not value or value[0] in "<>=":
        return False
    found.sysctl[key] = value
    return True


def _sections(text: str, origin: str) -> dict[str, dict[str, str]]:
    """Tuned's files: sections of `key=value`; keys keep their case, and a line of its own is a comment after # or ;."""
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] | None = None
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and line[-1] == "]":
            current = found.setdefault(line[1:-1].strip(), {})
            continue
        key, equals, value = line.partition("=")
        if current is None or not equals or not key.strip():
            raise HcpError(f"{origin} has in line {number} neither a section nor a setting", cause=repr(line[:80]))
        current[key.strip()] = value.strip()
    return found
