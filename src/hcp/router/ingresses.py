"""Ingresses as Routes: each path of a rule is one, so hosts are given and pods are found in the same way. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.api.paths import annotations_of, at

Object = dict[str, Any]
# What a name of an object cannot hold: Routes made here never meet those of users.
SEPARATOR = "~"
_CLASS = "kubernetes.io/ingress.class"
# By namespace and name: certificate and key of a TLS Secret.
Secrets = Callable[[str, str], tuple[str, str] | None]


def is_ours(ingress: Object, ours: str) -> bool:
    """One that names no class is served too, as OpenShift does it."""
    named = at(ingress, "spec.ingressClassName") or annotations_of(ingress).get(_CLASS) or ours
    return bool(named == ours)


def owner_of(key: str) -> str:
    """The key of the Ingress that a Route was made of; empty for a Route of its own."""
    return key.rpartition(SEPARATOR)[0] if SEPARATOR in key else ""


def routes_of(ingress: Object, secrets: Secrets) -> list[Object]:
    """Rules without a host are left out: who would own every name is not for one namespace to say."""
    spec, meta = ingress.get("spec") or {}, ingress["metadata"]
    certificates = _certificates(spec.get("tls") or (), str(meta.get("namespace") or ""), secrets)
    made: list[Object] = []
    for rule in spec.get("rules") or ():
        host = str(rule.get("host") or "").lower()
        paths = at(rule, "http.paths") or ([{"backend": spec["defaultBackend"]}] if spec.get("defaultBackend") else [])
        for path in paths if host else ():
            service = at(path, "backend.service") or {}
            if service.get("name"):
                made.append(_route(meta, len(made), host, path, service, certificates.get(host)))
    return made


def secrets_of(ingresses: Iterable[Object]) -> set[tuple[str, str]]:
    """Namespace and name of the Secrets that these name."""
    return {
        (str(one["metadata"].get("namespace") or ""), str(entry["secretName"]))
        for one in ingresses
        for entry in at(one, "spec.tls") or ()
        if entry.get("secretName")
    }


def _certificates(entries: Iterable[Mapping[str, Any]], namespace: str, secrets: Secrets) -> dict[str, Object]:
    """Host → the part of a Route that says with which certificate its TLS is ended."""
    found: dict[str, Object] = {}
    for entry in entries:
        pair = secrets(namespace, str(entry.get("secretName") or "")) if entry.get("secretName") else None
        tls: Object = {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}
        if pair is not None:
            tls |= {"certificate": pair[0], "key": pair[1]}
        found |= {str(host).lower(): tls for host in entry.get("hosts") or ()}
    return found


def _route(meta: Object, number: int, host: str, path: Object, service: Object, tls: Object | None) -> Object:
    wild = host.startswith("*.")
    spec: Object = {
        # A Route takes every name beside its host.
        "host": f"any.{host[2:]}" if wild else host,
        "wildcardPolicy": "Subdomain" if wild else "None",
        "path": str(path.get("path") or ""),
        "exactPath": path.get("pathType") == "Exact",
        "to": {"kind": "Service", "name": service["name"]},
        "port": {"servicePort": at(service, "port.name") or at(service, "port.number")},
    }
    # Without TLS of its own a host is served by both, with the router's certificate.
    spec["tls"] = tls or {"termination": "edge", "insecureEdgeTerminationPolicy": "Allow"}
    kept = {name: meta[name] for name in ("namespace", "creationTimestamp") if name in meta}
    # Another content is another Route: one that could not be served is tried again.
    mark = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
    uid, name = f"{meta.get('uid')}{SEPARATOR}{number}{SEPARATOR}{mark}", f"{meta['name']}{SEPARATOR}{number}"
    return {"metadata": {**kept, "name": name, "uid": uid, "generation": 1}, "spec": spec}
