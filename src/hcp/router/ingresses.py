"""Ingresses as Routes: each path of a rule is one, so hosts are given and pods are found in the same way. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.router import options
from hcp.router.backends import SEPARATOR

Object = dict[str, Any]
_CLASS = "kubernetes.io/ingress.class"
# On the IngressClass, which only administrators write: whether its Ingresses may answer for names that nobody claims.
ANY_HOST = "hcp.openshift.io/any-host"
KIND = "Ingress"
# As OpenShift has it: how TLS of an Ingress is ended.
TERMINATION = "route.openshift.io/termination"
# By namespace and name: certificate and key of a TLS Secret.
Secrets = Callable[[str, str], tuple[str, str] | None]


def is_ours(ingress: Object, ours: str) -> bool:
    """One that names no class is served too, as OpenShift does it."""
    named = at(ingress, "spec.ingressClassName") or annotations_of(ingress).get(_CLASS) or ours
    return bool(named == ours)


def owner_of(key: str) -> str:
    """The key of the Ingress that a Route was made of; empty for a Route of its own."""
    return key.rpartition(SEPARATOR)[0] if SEPARATOR in key else ""


def may_answer_for_any(ingress_class: Mapping[str, Any] | None) -> bool:
    return annotations_of(ingress_class).get(ANY_HOST) == "true"


def routes_of(ingress: Object, secrets: Secrets) -> list[Object]:
    """One for each path, and for the default backend: below each host of the rules, and wherever nobody answers."""
    spec = ingress.get("spec") or {}
    tls = _certificates(spec.get("tls") or (), ingress, secrets)
    rules = [(str(rule.get("host") or "").lower(), at(rule, "http.paths") or []) for rule in spec.get("rules") or ()]
    default = spec.get("defaultBackend")
    if default:
        rules += [
            (host, [{"path": "/", "pathType": "Prefix", "backend": default}])
            for host in dict.fromkeys([*dict(rules), ""])
        ]
    made: dict[tuple[str, str, bool], Object] = {}
    for host, paths in rules:
        for path in paths:
            service = at(path, "backend.service") or {}
            key = (host, str(path.get("path") or "/"), path.get("pathType") == "Exact")
            # What a rule says comes before the default.
            if service.get("name") and key not in made:
                made[key] = _route(ingress, len(made), host, path, service, tls.get(host))
    return list(made.values())


def secrets_of(ingresses: Iterable[Object]) -> set[tuple[str, str]]:
    """Namespace and name of the Secrets that these name."""
    return {
        (str(one["metadata"].get("namespace") or ""), str(entry["secretName"]))
        for one in ingresses
        for entry in at(one, "spec.tls") or ()
        if entry.get("secretName")
    }


def _certificates(entries: Iterable[Mapping[str, Any]], ingress: Object, secrets: Secrets) -> dict[str, Object]:
    """Host → the part of a Route that says with which certificate its TLS is ended, or that it is passed on."""
    found: dict[str, Object] = {}
    namespace = str(ingress["metadata"].get("namespace") or "")
    passed_on = annotations_of(ingress).get(TERMINATION) == "passthrough"
    for entry in entries:
        if passed_on:
            through = {"termination": "passthrough", "insecureEdgeTerminationPolicy": "Redirect"}
            found |= {str(host).lower(): through for host in entry.get("hosts") or ()}
            continue
        pair = secrets(namespace, str(entry.get("secretName") or "")) if entry.get("secretName") else None
        tls: Object = {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}
        if pair is not None:
            tls |= {"certificate": pair[0], "key": pair[1]}
        found |= {str(host).lower(): tls for host in entry.get("hosts") or ()}
    return found


def _route(ingress: Object, number: int, host: str, path: Object, service: Object, tls: Object | None) -> Object:
    wild, meta = host.startswith("*."), ingress["metadata"]
    spec: Object = {
        # A Route takes every name beside its host.
        "host": f"any.{host[2:]}" if wild else host,
        "wildcardPolicy": "Subdomain" if wild else "None",
        "path": str(path.get("path") or ""),
        "exactPath": path.get("pathType") == "Exact",
        "to": {"kind": "Service", "name": service["name"]},
        "port": {"servicePort": at(service, "port.name") or at(service, "port.number")},
    }
    if not host:
        spec["anyHost"] = KIND
    # Without TLS of its own a host is served by both, with the router's certificate.
    spec["tls"] = tls or {"termination": "edge", "insecureEdgeTerminationPolicy": "Allow"}
    if spec["tls"]["termination"] == "passthrough":
        spec["path"], spec["exactPath"] = "", False
    asked = {name: value for name, value in annotations_of(ingress).items() if name.startswith(options.PREFIX)}
    kept = {name: meta[name] for name in ("namespace", "creationTimestamp") if name in meta}
    # Another content is another Route: one that could not be served is tried again.
    mark = hashlib.sha256(json.dumps([spec, asked], sort_keys=True).encode()).hexdigest()[:16]
    uid, name = f"{meta.get('uid')}{SEPARATOR}{number}{SEPARATOR}{mark}", f"{meta['name']}{SEPARATOR}{number}"
    return {"metadata": {**kept, "name": name, "uid": uid, "generation": 1, "annotations": asked}, "spec": spec}
