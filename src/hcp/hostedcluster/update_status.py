"""What a status says of updates: releases that one may go to, and those with known risks. Pure.

Whoever runs an update service decides what it says: lists and texts are bounded, and what names no image is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hcp import graph
from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.oci.reference import Reference
from hcp.runtime.conditions import Verdict, set_condition

MOST_UPDATES, MOST_RISKY, MOST_RISKS, MOST_CHANNELS = 60, 30, 10, 20
LONGEST, LONGEST_TEXT = 256, 1024
_URL = "url"
RECOMMENDED = "Recommended"


@dataclass(frozen=True)
class Updates:
    """What was found out, or why nothing was."""

    available: tuple[Mapping[str, Any], ...] = ()
    # Releases, each with its risks.
    conditional: tuple[Mapping[str, Any], ...] = ()
    channels: tuple[str, ...] = ()
    verdict: Verdict = (True, c.AS_EXPECTED, "")


def failed(reason: str, message: str) -> Updates:
    """Nothing is offered while it is not known."""
    return Updates(verdict=(False, reason, message[: 2 * LONGEST_TEXT]))


def found(known: graph.Graph, channel: str, version: str) -> Updates:
    """Of a graph: what its channel offers to this version."""
    part = known.channel(channel)
    if version not in part.nodes:
        have = ", ".join(part.versions[::-1][:5]) or "nothing"
        return failed(c.VERSION_NOT_FOUND, f'Version {version} is not in the channel "{channel}", which has: {have}')
    updates = [release for node in part.updates(version) if (release := _release(node))]
    risky = [
        {"release": release, "risks": [_risk(risk) for risk in risks[:MOST_RISKS]]}
        for node, risks in part.conditional_updates(version)
        if (release := _release(node))
    ]
    return Updates(
        tuple(updates[:MOST_UPDATES]), tuple(risky[:MOST_RISKY]), part.nodes[version].channels[:MOST_CHANNELS]
    )


def told(
    version: Mapping[str, Any], updates: Updates | None, before: Mapping[str, Any] | None, now: str, *, following: bool
) -> dict[str, Any]:
    """`status.version` with what is known of updates. `following`: the cluster follows a channel.

    While nothing is known, as after a restart, what was said of the same version stays.
    """
    before = before or {}
    same = at(before, "desired.version") == at(version, "desired.version")
    if not following or (updates is None and not same):
        return {**version, "availableUpdates": []}
    if updates is None:
        kept = {name: before[name] for name in ("availableUpdates", "conditionalUpdates") if name in before}
        return _with_channels({**version, "availableUpdates": [], **kept}, at(before, "desired.channels"))
    made = {**version, "availableUpdates": [dict(one) for one in updates.available]}
    if updates.conditional:
        said = {at(one, "release.version"): one.get("conditions") for one in before.get("conditionalUpdates") or ()}
        made["conditionalUpdates"] = [
            {**one, "conditions": _recommended(one["risks"], said.get(one["release"]["version"]), now)}
            for one in updates.conditional
        ]
    return _with_channels(made, updates.channels)


def _with_channels(version: dict[str, Any], channels: Sequence[str] | None) -> dict[str, Any]:
    return {**version, "desired": {**version["desired"], "channels": list(channels)}} if channels else version


def _release(node: graph.Node) -> dict[str, Any] | None:
    try:
        Reference.parse(node.payload)
        graph.Version.parse(node.version)
    except HcpError:
        return None
    if len(node.payload) > LONGEST or len(node.version) > LONGEST:
        return None
    made: dict[str, Any] = {"version": node.version, "image": node.payload}
    if url := str(node.metadata.get(_URL) or ""):
        made["url"] = url[:LONGEST_TEXT]
    if node.channels:
        made["channels"] = [channel[:LONGEST] for channel in node.channels[:MOST_CHANNELS]]
    return made


def _risk(risk: graph.Risk) -> dict[str, Any]:
    rules = [{"type": str(rule.get("type") or "")[:LONGEST]} for rule in risk.rules[:MOST_RISKS]]
    texts = {"name": risk.name[:LONGEST], "message": risk.message[:LONGEST_TEXT], "url": risk.url[:LONGEST_TEXT]}
    return {**texts, "matchingRules": rules}


def _recommended(risks: Sequence[Mapping[str, Any]], before: Any, now: str) -> list[dict[str, Any]]:
    """Whether the risks concern this cluster: those that concern everybody do, others cannot be told from here."""
    always = [risk for risk in risks if any(rule["type"] == "Always" for rule in risk["matchingRules"])]
    told = always or risks
    message = "; ".join(f"{risk['name']}: {risk['message']}" for risk in told)[: 4 * LONGEST_TEXT]
    status, reason = ("False", "Exposed") if always else ("Unknown", "NotEvaluated")
    return set_condition(before, RECOMMENDED, status, reason, message, at=now)
