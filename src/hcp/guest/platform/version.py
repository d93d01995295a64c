"""The ClusterVersion of a hosted cluster: what its HostedCluster says, in the words of the inside. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.controlplane.meta import digest
from hcp.guest.objects import Manifest, obj
from hcp.guest.platform.operators import API_VERSION
from hcp.runtime.conditions import get_condition

NAME = "version"
# Of a cluster that follows no channel, as OpenShift words it.
_NO_CHANNEL = ("False", "NoChannel", "The update channel has not been configured.")
_COPIED = {
    "Available": c.CLUSTER_VERSION_AVAILABLE,
    "Progressing": c.CLUSTER_VERSION_PROGRESSING,
    "ReleaseAccepted": c.CLUSTER_VERSION_RELEASE_ACCEPTED,
    "RetrievedUpdates": c.CLUSTER_VERSION_RETRIEVED_UPDATES,
}
_OPPOSITE = {"True": "False", "False": "True"}


def manifest(cluster: Mapping[str, Any]) -> Manifest:
    spec = cluster["spec"]
    body = {"clusterID": str(spec.get("clusterID") or cluster["metadata"]["uid"])}
    if channel := spec.get("channel"):
        body["channel"] = str(channel)
    return obj(API_VERSION, "ClusterVersion", NAME, {"spec": body})


def status(told: Mapping[str, Any], generation: int, since: str) -> Manifest:
    """`told` is the status of the HostedCluster; `since` stands where it names no time."""
    version: Mapping[str, Any] = told.get("version") or {}
    desired = {**at(version, "desired", {})}
    desired.setdefault("version", "")
    body: Manifest = {
        "desired": desired,
        "history": [_entry(one) for one in version.get("history") or ()],
        "observedGeneration": generation,
        "versionHash": digest(desired["image"]),
        "availableUpdates": list(version.get("availableUpdates") or ()),
        "conditions": conditions(told.get("conditions") or (), since),
    }
    if risky := [dict(one) for one in version.get("conditionalUpdates") or () if _fits(one)]:
        body["conditionalUpdates"] = risky
    return {"apiVersion": API_VERSION, "kind": "ClusterVersion", "metadata": {"name": NAME}, "status": body}


def conditions(told: Iterable[Mapping[str, Any]], since: str) -> list[Manifest]:
    told = list(told)
    found = [_condition(kind, get_condition(told, name)) for kind, name in _COPIED.items() if get_condition(told, name)]
    succeeding = get_condition(told, c.CLUSTER_VERSION_SUCCEEDING)
    if succeeding is not None:
        failing = _condition("Failing", succeeding)
        found.append({**failing, "status": _OPPOSITE.get(failing["status"], failing["status"])})
    upgradeable = get_condition(told, c.CLUSTER_VERSION_UPGRADEABLE)
    if upgradeable is not None and upgradeable.get("status") == "False":  # one that is missing means yes
        found.append(_condition("Upgradeable", upgradeable))
    if not any(one["type"] == "RetrievedUpdates" for one in found):
        status, reason, message = _NO_CHANNEL
        said = {"status": status, "reason": reason, "message": message}
        found.append({"type": "RetrievedUpdates", **said, "lastTransitionTime": since})
    return found


def _condition(kind: str, told: Mapping[str, Any] | None) -> Manifest:
    kept = {name: (told or {}).get(name) or "" for name in ("status", "reason", "message", "lastTransitionTime")}
    return {"type": kind, **kept}


def _entry(told: Mapping[str, Any]) -> Manifest:
    """An entry that is not completed has to say so by a null."""
    return {**told, "completionTime": told.get("completionTime")}


def _fits(update: Mapping[str, Any]) -> bool:
    """Whether the inside may say it: its kind asks for more than an update service has to tell."""
    risks = update.get("risks") or ()
    texts = all(risk.get("name") and risk.get("message") and risk.get("url") for risk in risks)
    return texts and all(rule.get("type") == "Always" for risk in risks for rule in risk.get("matchingRules") or ())
