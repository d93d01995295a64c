"""What a router needs that ends TLS: certificates of Routes, authorities of their pods, and the status of Ingresses."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import NotFound
from hcp.router import ingresses
from hcp.router.admission import Decision, termination
from hcp.router.keys import Certificate
from hcp.runtime import EventRecorder

MANAGER = "hcp-router"
# Objects of a list do not say of which kind they are.
_KIND = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}
Object = dict[str, Any]


def pair_of(secret: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """Certificate and key of a TLS Secret; None where it has not both."""
    data = (secret or {}).get("data") or {}
    try:
        pair = [base64.b64decode(data[name], validate=True).decode("ascii") for name in ("tls.crt", "tls.key")]
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    return (pair[0], pair[1]) if all(pair) else None


def with_external(route: Object, secrets: ingresses.Secrets) -> Object:
    """The Route with the certificate of the Secret that it names, if there is one, written into it."""
    tls = at(route, "spec.tls") or {}
    named = at(tls, "externalCertificate.name")
    if not named or tls.get("certificate") or tls.get("key"):
        return route
    pair = secrets(str(route["metadata"].get("namespace") or ""), str(named))
    if pair is None:
        return route
    external = {"name": named, "taken": True}
    taken = {**tls, "certificate": pair[0], "key": pair[1], "externalCertificate": external}
    return {**route, "spec": {**route["spec"], "tls": taken}}


def external_of(route: Object) -> Iterable[str]:
    """The Secret, as namespace/name, that a Route names."""
    named = at(route, "spec.tls.externalCertificate.name")
    return (f"{route['metadata'].get('namespace')}/{named}",) if named else ()


def keys(
    decisions: Iterable[Decision], routes: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Certificate], dict[str, str]]:
    """By key of the Route: the certificate of its own that it brings, and who signed those of its pods."""
    certificates: dict[str, Certificate] = {}
    authorities: dict[str, str] = {}
    for decision in decisions:
        tls = at(routes[decision.key], "spec.tls") or {}
        if not decision.admitted or termination(routes[decision.key]) not in ("edge", "reencrypt"):
            continue
        if tls.get("certificate"):
            chain = [str(tls.get(name) or "") for name in ("certificate", "caCertificate", "key")]
            certificates[decision.key] = Certificate(decision.name, "\n".join(chain))
        if tls.get("termination") == "reencrypt":
            authorities[decision.key] = str(tls["destinationCACertificate"])
    return certificates, authorities


async def tell_ingress(client: Client, ingress: Object, decisions: Iterable[Decision], canonical: str) -> None:
    """One of which anything is served says where."""
    meta, served = ingress["metadata"], any(decision.admitted for decision in decisions)
    wanted = [{"hostname": canonical}] if served and canonical else []
    if wanted == (at(ingress, "status.loadBalancer.ingress") or []) or meta.get("deletionTimestamp"):
        return
    body = {"status": {"loadBalancer": {"ingress": wanted or None}}}
    with contextlib.suppress(NotFound):
        await client.patch(
            r.INGRESSES, meta["name"], meta.get("namespace"), body, subresource="status", manager=MANAGER
        )


class Words:
    """An Ingress has no place in its status for what is wrong with it: an event says it, once."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._told: dict[str, set[tuple[str, str]]] = {}

    def tell(self, key: str, ingress: Object | None, decisions: Iterable[Decision]) -> None:
        wrong = {(one.reason, one.message) for one in decisions if not one.admitted}
        before = self._told.pop(key, set())
        if ingress is None or not wrong:
            return
        self._told[key] = wrong
        for reason, message in sorted(wrong - before):
            self._events.event({**ingress, **_KIND}, "Warning", reason, message)
