"""Many machines' conditions as one: counts, reasons, and one line per machine, within the size limits."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at
from hcp.runtime.conditions import condition_of

_BLOCK = 1000
_WHOLE = 3000
_REASONS = 1024
_COUNTING = re.compile(r"^\d+ of \d+ completed$")


@dataclass(frozen=True)
class Summary:
    """An aggregated condition."""

    ok: bool
    reason: str
    message: str


def machines_summary(machines: Sequence[Mapping[str, Any]], kind: str, word: str, missing: str) -> Summary:
    """Condition ``kind`` of all machines; ``word`` says it in messages, ``missing`` is the reason where none is."""
    if not machines:
        return Summary(False, "NotFound", "No Machines are created")
    lines: dict[str, list[str]] = {}
    bad = 0
    for machine in sorted(machines, key=lambda item: str(item["metadata"]["name"])):
        found = condition_of(machine, kind)
        if found is not None and found.get("status") == "True":
            continue
        bad += 1
        reason, text = missing, ""
        if found is not None:
            reason, text = found.get("reason") or missing, found.get("message") or ""
            if _COUNTING.match(text):
                text = (condition_of(machine, "InfrastructureReady") or {}).get("message") or text
        detail = f": {text}" if text else ""
        lines.setdefault(reason, []).append(f"Machine {machine['metadata']['name']}: {reason}{detail}\n")
    if not bad:
        return Summary(True, "AsExpected", f"All is well: {len(machines)} of {len(machines)} machines are {word}")
    message = f"{bad} of {len(machines)} machines are not {word}\n"
    for reason in sorted(lines):
        message += _limited(lines[reason])
    if len(message) > _WHOLE:
        message = message[:_WHOLE] + "... message truncated"
    return Summary(False, _joined_reasons(lines), message.rstrip("\n"))


def _limited(lines: Iterable[str]) -> str:
    block = ""
    for line in lines:
        if len(block) + len(line) > _BLOCK:
            return block + "... too many similar errors\n"
        block += line
    return block


def _joined_reasons(reasons: Iterable[str]) -> str:
    whole = ",".join(sorted(reasons))
    suffix = ",ReasonsTruncated"
    return whole if len(whole) <= _REASONS else whole[: _REASONS - len(suffix)] + suffix


def cidr_conflicts(machines: Iterable[Mapping[str, Any]], cluster_network: Sequence[str]) -> list[str]:
    """Machines whose every usable address lies inside the guest's pod network: nobody could reach them."""
    networks = [ipaddress.ip_network(cidr, strict=False) for cidr in cluster_network]
    result = []
    for machine in machines:
        addresses = []
        for entry in at(machine, "status.addresses") or []:
            try:
                address = ipaddress.ip_address(entry.get("address", ""))
            except ValueError:
                continue
            if entry.get("type") in ("InternalIP", "ExternalIP") and not address.is_link_local:
                addresses.append(address)
        inside = [any(a.version == n.version and a in n for n in networks) for a in addresses]
        if addresses and all(inside):
            shown = ", ".join(sorted({str(address) for address in addresses}))
            result.append(f"machine [{machine['metadata']['name']}] with ip(s) [{shown}]")
    return result
