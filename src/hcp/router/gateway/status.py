"""What Gateways and their routes are told: pure, and the same again when nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at
from hcp.router.gateway.grants import GROUP
from hcp.router.gateway.listeners import CONTROLLER, Listener
from hcp.router.gateway.translate import Attached
from hcp.runtime.conditions import Verdict, with_verdicts

Object = Mapping[str, Any]
# In the words of the Gateway API's project.
FEATURES = (
    *("Gateway", "HTTPRoute", "ReferenceGrant", "TLSRoute"),
    *("HTTPRoute303RedirectStatusCode", "HTTPRoute307RedirectStatusCode", "HTTPRoute308RedirectStatusCode"),
    *("HTTPRouteBackendProtocolH2C", "HTTPRouteBackendProtocolWebSocket", "HTTPRouteBackendTimeout"),
    *("HTTPRouteHostRewrite", "HTTPRouteMethodMatching", "HTTPRouteNamedRouteRule", "HTTPRoutePathRedirect"),
    *("HTTPRoutePathRewrite", "HTTPRoutePortRedirect", "HTTPRouteQueryParamMatching", "HTTPRouteRequestTimeout"),
    *("HTTPRouteResponseHeaderModification", "HTTPRouteSchemeRedirect"),
)


def _generation(live: Object) -> int:
    return int(live["metadata"].get("generation") or 1)


def of_class(live: Object, now: str) -> dict[str, Any]:
    told: dict[str, Verdict | None] = {"Accepted": (True, "Accepted", "")}
    return {
        "conditions": with_verdicts(at(live, "status.conditions"), told, _generation(live), now),
        "supportedFeatures": [{"name": name} for name in sorted(FEATURES)],
    }


def of_gateway(live: Object, listeners: list[Listener], attached: Mapping[str, int], where: str, now: str) -> Any:
    """`attached`: how many routes each listener has, by its name; `where`: the name that leads to the router."""
    generation, works = _generation(live), [one for one in listeners if one.works]
    known = {one.get("name"): one for one in at(live, "status.listeners") or ()}
    every = len(works) == len(listeners)
    accepted: Verdict = (
        (True, "Accepted", "") if every else (bool(works), "ListenersNotValid", "Some listeners are not")
    )
    programmed: Verdict = (True, "Programmed", "") if works else (False, "Invalid", "No listener works")
    told: dict[str, Verdict | None] = {"Accepted": accepted, "Programmed": programmed}
    said = []
    for one in listeners:
        verdicts: dict[str, Verdict | None] = {
            "Accepted": one.accepted,
            "Programmed": (True, "Programmed", "") if one.works else (False, "Invalid", "See the other conditions"),
            "ResolvedRefs": one.resolved,
        }
        before = (known.get(one.name) or {}).get("conditions")
        said.append(
            {
                "name": one.name,
                "attachedRoutes": attached.get(one.name, 0),
                "supportedKinds": [{"group": GROUP, "kind": kind} for kind in one.kinds],
                "conditions": with_verdicts(before, verdicts, generation, now),
            }
        )
    return {
        "addresses": [{"type": "Hostname", "value": where}] if where else [],
        "conditions": with_verdicts(at(live, "status.conditions"), told, generation, now),
        "listeners": said,
    }


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why hosts of a route are not served: all of them, or some."""

    reason: str
    message: str
    whole: bool


def of_route(live: Object, attached: list[Attached], refused: Refusal | None, now: str) -> list[dict[str, Any]]:
    """The wanted `status.parents`: ours after those of others."""
    parents = at(live, "status.parents") or []
    mine = [one for one in parents if one.get("controllerName") == CONTROLLER]
    parents_of_ours = []
    for one in attached:
        before: Object = next((entry for entry in mine if entry.get("parentRef") == one.ref), {})
        accepted, partly = one.accepted, None
        if refused is not None and accepted[0] is True:
            said: Verdict = (not refused.whole, refused.reason, refused.message)
            accepted, partly = (said, None) if refused.whole else (accepted, said)
        told: dict[str, Verdict | None] = {
            "Accepted": accepted,
            "ResolvedRefs": one.resolved,
            "PartiallyInvalid": partly,
        }
        conditions = with_verdicts(before.get("conditions"), told, _generation(live), now)
        parents_of_ours.append({"parentRef": one.ref, "controllerName": CONTROLLER, "conditions": conditions})
    return [one for one in parents if one.get("controllerName") != CONTROLLER] + parents_of_ours
