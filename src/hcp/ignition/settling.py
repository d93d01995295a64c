"""What a configuration changes in a system that runs already.

On OpenShift's disks Ignition runs before the system starts; on ours as one of its first services. Files that other
services have read by then, and units that run, would follow only after a restart of the machine: a unit of the
document sees to them before containerd and kubelet start. Nodes whose configuration has none of it have no such unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.ignition.document import Document, document, file, unit
from hcp.ignition.kernel_arguments import UNIT as KERNEL_ARGUMENTS

SCRIPT = "/usr/lib/hcp/settle"
UNIT = "settle.service"
# Folder → what reads it, in the order in which it is run. A module brings settings of its own, so it comes first.
_READERS = {
    "modules-load.d": "/usr/lib/systemd/systemd-modules-load",
    "sysctl.d": "/usr/lib/systemd/systemd-sysctl",
    "tmpfiles.d": "systemd-tmpfiles --create",
    "udev/rules.d": "udevadm control --reload",
}

# What was started since is new already, and some things must not be done twice.
_ANEW = """\
since() { systemctl show --property "$2" --value "$1"; }
first=$(since hcp-firstboot.service InactiveExitTimestampMonotonic)
for name in @UNITS@; do
    if systemctl is-active --quiet "$name" && [ "$(since "$name" ActiveEnterTimestampMonotonic)" -lt "$first" ]; then
        systemctl --no-block try-restart "$name"
    fi
done"""

_UNIT = f"""\
[Unit]
Description=What the cluster's configuration changes in what runs already
ConditionPathExists=!/var/lib/hcp/settled
After=local-fs.target {KERNEL_ARGUMENTS}
Before=containerd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={SCRIPT}
ExecStartPost=touch /var/lib/hcp/settled

[Install]
WantedBy=multi-user.target
"""


def settled(parts: Iterable[Mapping[str, Any]]) -> tuple[list[Document], Document]:
    """The parts as Ignition and the disk can take them, and what has to be done beside them.

    Instances of templates (`name@x.service`) are switched on here: the disk's first boot knows whole units only.
    """
    taken, steps = [], _Steps()
    for part in parts:
        for kind in ("files", "links"):
            for entry in (part.get("storage") or {}).get(kind) or []:
                steps.path(str(entry["path"]))
        units = (part.get("systemd") or {}).get("units") or []
        instances = [entry for entry in units if _is_instance(entry) and entry.get("enabled")]
        for entry in units:
            steps.unit(entry)
        kept = [{k: v for k, v in e.items() if k != "enabled"} if e in instances else e for e in units]
        taken.append({**part, "systemd": {**part["systemd"], "units": kept}} if instances else dict(part))
    return taken, steps.document()


class _Steps:
    def __init__(self) -> None:
        self._folders: set[str] = set()
        self._instances: set[str] = set()
        self._stop: set[str] = set()
        self._anew: set[str] = set()

    def path(self, path: str) -> None:
        for folder in _READERS:
            if path.startswith(f"/etc/{folder}/"):
                self._folders.add(folder)
        if path == "/etc/sysctl.conf":
            self._folders.add("sysctl.d")

    def unit(self, entry: Mapping[str, Any]) -> None:
        name = str(entry["name"])
        if entry.get("mask") or entry.get("enabled") is False:
            self._stop.add(name)
        elif entry.get("contents") or entry.get("dropins"):
            self._anew.add(name)
        if _is_instance(entry) and entry.get("enabled"):
            self._instances.add(name)

    def document(self) -> Document:
        lines = [command for folder, command in _READERS.items() if folder in self._folders]
        # One setting that this kernel does not know must not keep the others, or the node, from their work.
        lines = [f"{line} || echo 'not everything could be applied: {line}' >&2" for line in lines]
        lines += [f"systemctl --no-block stop {_quoted(name)}" for name in sorted(self._stop)]
        anew = [_quoted(name) for name in sorted(self._anew - self._stop - self._instances) if "@." not in name]
        lines += [_ANEW.replace("@UNITS@", " ".join(anew))] if anew else []
        lines += [f"systemctl --no-block enable --now {_quoted(name)}" for name in sorted(self._instances)]
        if not lines:
            return document()
        text = "\n".join(["#!/bin/sh", "# What the cluster's configuration changes in what runs already.", *lines, ""])
        return document(files=[file(SCRIPT, text, 0o755)], units=[unit(UNIT, _UNIT)])


def _is_instance(entry: Mapping[str, Any]) -> bool:
    head, at, rest = str(entry["name"]).partition("@")
    return bool(head and at and not rest.startswith("."))


def _quoted(name: str) -> str:
    """For a shell; names of units were checked and have no quotes."""
    return f"'{name}'"
