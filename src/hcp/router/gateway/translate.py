"""HTTPRoutes and TLSRoutes as Routes: hosts are given, pods found and words checked as for all others. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hcp.api.paths import at
from hcp.router import options
from hcp.router.gateway import changes, grants, matches, redirects
from hcp.router.gateway.grants import GROUP, Reference
from hcp.router.gateway.listeners import KINDS, RESOLVED, Listener, shared
from hcp.router.gateway.redirects import Unsupported
from hcp.runtime.conditions import Verdict

Object = Mapping[str, Any]
# Names of Routes made here hold what no name of an object can, and another word than those of Ingresses.
MARK = "~gateway~"
KIND = "Gateway"
ACCEPTED: Verdict = (True, "Accepted", "")
# What requests are told of a rule that leads nowhere, and of one whose pods are not ready.
NO_BACKEND, NO_POD = 500, 503
_DURATION = re.compile(r"(\d{1,5}(?:h|m|s|ms)){1,4}", re.ASCII)
_PART = re.compile(r"(\d+)(ms|h|m|s)", re.ASCII)
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


@dataclass(slots=True)
class Attached:
    """What became of one parentRef."""

    ref: Object
    accepted: Verdict
    resolved: Verdict
    listeners: list[Listener] = field(default_factory=list)
    routes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class World:
    """What a route is looked at beside."""

    # By namespace/name, of Gateways of our class only.
    gateways: Mapping[str, list[Listener]]
    namespace: Callable[[str], Object | None]
    service: Callable[[str, str], Object | None]
    grants: Sequence[Object]


def attach(route: Object, kind: str, world: World) -> list[Attached]:
    """One entry for each parentRef that names a Gateway of ours."""
    namespace = str(route["metadata"].get("namespace") or "")
    found = []
    for ref in at(route, "spec.parentRefs") or ():
        key = f"{ref.get('namespace') or namespace}/{ref.get('name')}"
        ours = (ref.get("group") or GROUP, ref.get("kind") or "Gateway") == (GROUP, "Gateway")
        if ours and key in world.gateways:
            found.append(_attach(route, kind, namespace, ref, world.gateways[key], world))
    _once(found)
    return found


def _once(found: list[Attached]) -> None:
    """Of listeners and Gateways that have a name in common, one leads there: a route is not in its own way."""
    seen: set[str] = set()
    for one in found:
        kept = []
        for made in one.routes:
            spec = json.dumps(made["spec"], sort_keys=True)
            if spec not in seen:
                kept.append(made)
            seen.add(spec)
        one.routes = kept


def _attach(route: Object, kind: str, namespace: str, ref: Object, all_: list[Listener], world: World) -> Attached:
    resolved = _resolved(route, kind, namespace, world)
    named = [
        one
        for one in all_
        # Of one whose certificate is not there routes are attached all the same, and served when it is.
        if ref.get("sectionName") in (None, one.name)
        and ref.get("port") in (None, one.port)
        and one.accepted[0] is True
    ]
    if not named:
        return Attached(ref, (False, "NoMatchingParent", "The Gateway has no such listener that works"), resolved)
    allowing = [one for one in named if kind in one.kinds and one.admits(namespace, world.namespace(namespace))]
    if not allowing:
        return Attached(ref, (False, "NotAllowedByListeners", f"No listener lets {kind}s of {namespace} in"), resolved)
    hosts = [str(host).lower() for host in at(route, "spec.hostnames") or ()] or [""]
    pairs = [(one, name) for one in allowing for host in hosts if (name := shared(one.hostname, host)) is not None]
    if not pairs:
        return Attached(ref, (False, "NoMatchingListenerHostname", "No listener has a name in common"), resolved)
    try:
        made = [(one, found) for one, name in pairs for found in _routes(route, kind, one, name, world)]
    except Unsupported as error:
        return Attached(ref, (False, "UnsupportedValue", str(error)), resolved)
    listeners = list({one.name: one for one, _ in pairs}.values())
    return Attached(ref, ACCEPTED, resolved, listeners, _numbered(route, ref, [one for by, one in made if by.works]))


def _numbered(route: Object, ref: Object, specs: list[tuple[dict[str, Any], dict[str, str]]]) -> list[dict[str, Any]]:
    meta, made = route["metadata"], []
    where = hashlib.sha256(json.dumps(ref, sort_keys=True).encode()).hexdigest()[:8]
    for number, (spec, asked) in enumerate(specs):
        # What its author wrote: a host is not lost for a Service that went, or for a certificate that was renewed.
        written = {key: value for key, value in spec.items() if key not in ("answers", "tls")}
        mark = hashlib.sha256(json.dumps([written, asked], sort_keys=True).encode()).hexdigest()[:16]
        name = f"{meta['name']}{MARK}{where}~{number}"
        kept = {key: meta[key] for key in ("namespace", "creationTimestamp") if key in meta}
        identity = {"name": name, "uid": f"{meta.get('uid')}~{where}~{number}~{mark}", "generation": 1}
        made.append({"metadata": {**kept, **identity, "annotations": asked}, "spec": spec})
    return made


def owner_of(key: str) -> str:
    """The key of the HTTPRoute or TLSRoute that a Route was made of; empty for others."""
    return key.partition(MARK)[0] if MARK in key else ""


def _routes(
    route: Object, kind: str, listener: Listener, host: str, world: World
) -> Iterable[tuple[dict[str, Any], dict[str, str]]]:
    base, namespace = _place(host), str(route["metadata"].get("namespace") or "")
    for rule in at(route, "spec.rules") or ():
        refs = [one for one in rule.get("backendRefs") or () if _may(one, kind, namespace, world)]
        leads = any(_weight(one) and world.service(*_service(one, namespace)) is not None for one in refs)
        spec = {**base, **_targets(refs), "answers": NO_POD if leads else NO_BACKEND}
        if kind == KINDS["TLS"]:
            yield {**spec, "tls": {"termination": "passthrough"}}, {}
            continue
        if listener.protocol == "HTTPS":
            spec["tls"] = {"termination": "edge", **_certificate(listener, host)}
        spec["changes"] = changes.of_rule(rule)
        wanted: Iterable[Object] = rule.get("matches") or ({},)
        for match in wanted:
            place = matches.place(match)
            yield {**spec, **place, "scheme": listener.protocol.lower(), **_goto(rule, listener, place)}, _asked(rule)


def _goto(rule: Object, listener: Listener, place: Object) -> dict[str, str]:
    given = redirects.of_rule(rule)
    if given is None:
        return {}
    prefix = None if place["exactPath"] else str(place["path"])
    return {"redirect": redirects.row(given, listener.protocol.lower(), prefix)}


def _certificate(listener: Listener, host: str) -> dict[str, str]:
    """That of the listener, for this host; who answers for any name shows the default one."""
    if not host or listener.certificate is None:
        return {}
    return {"certificate": listener.certificate[0], "key": listener.certificate[1]}


def _place(host: str) -> dict[str, Any]:
    if not host:
        return {"anyHost": KIND}
    wild = host.startswith("*.")
    return {"host": f"any.{host[2:]}" if wild else host, "wildcardPolicy": "Subdomain" if wild else "None"}


def _service(ref: Object, namespace: str) -> tuple[str, str]:
    return str(ref.get("namespace") or namespace), str(ref.get("name"))


def _weight(ref: Object) -> int:
    return 1 if ref.get("weight") is None else int(ref["weight"])


def _may(ref: Object, kind: str, namespace: str, world: World) -> bool:
    """Nothing is led to a Service of a namespace that does not permit it."""
    if (ref.get("group") or "", ref.get("kind") or "Service") != ("", "Service"):
        return False
    return grants.permitted(Reference(kind, namespace, "", "Service", *_service(ref, namespace)), world.grants)


def _targets(refs: list[Object]) -> dict[str, Any]:
    targets = []
    for ref in refs:
        if ref.get("filters"):
            raise Unsupported("filters of a backendRef are not served: write them for the rule")
        target = {"kind": "Service", "name": ref.get("name"), "weight": _weight(ref), "servicePort": ref.get("port")}
        targets.append({**target, **({"namespace": ref["namespace"]} if ref.get("namespace") else {})})
    return {"to": targets[0] if targets else {}, "alternateBackends": targets[1:]}


def _asked(rule: Object) -> dict[str, str]:
    """Annotations that ask for the same as filters and timeouts."""
    asked: dict[str, str] = {}
    for one in rule.get("filters") or ():
        if at(one, "urlRewrite.path.type") == "ReplacePrefixMatch":
            asked[f"{options.PREFIX}rewrite-target"] = str(at(one, "urlRewrite.path.replacePrefixMatch") or "/")
    if patience := _patience(rule):
        asked[f"{options.PREFIX}timeout"] = f"{patience}ms"
    return asked


def _patience(rule: Object) -> int:
    text = str(at(rule, "timeouts.backendRequest") or at(rule, "timeouts.request") or "")
    if not text:
        return 0
    if _DURATION.fullmatch(text) is None:
        raise Unsupported("timeouts are written like 10s or 1m30s")
    found = sum(int(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text))
    # None at all is what nobody waits for: as long as there can be.
    return min(found, options.MAX_MILLISECONDS) or options.MAX_MILLISECONDS


def _resolved(route: Object, kind: str, namespace: str, world: World) -> Verdict:
    for rule in at(route, "spec.rules") or ():
        for ref in rule.get("backendRefs") or ():
            where, name = _service(ref, namespace)
            if (ref.get("group") or "", ref.get("kind") or "Service") != ("", "Service"):
                return False, "InvalidKind", "Only Services can be backends"
            if not _may(ref, kind, namespace, world):
                return False, "RefNotPermitted", f"No ReferenceGrant in {where} permits it"
            if world.service(where, name) is None:
                return False, "BackendNotFound", f"There is no Service {where}/{name}"
    return RESOLVED
