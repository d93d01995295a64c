"""Judging certificate requests of nodes: only this cluster's own machines get certificates.

A node's first request is made with the bootstrap credential that every node knows, so the name it asks for must belong
to a machine of this cluster that has no node yet. Serving certificates may only name the machine's own addresses.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from hcp.api.paths import at

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
BOOTSTRAP_USER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
NODE_GROUP = "system:nodes"
_PREFIX = "system:node:"
_CLIENT_USAGES = ({"digital signature", "client auth"}, {"digital signature", "key encipherment", "client auth"})
_SERVING_USAGES = ({"digital signature", "server auth"}, {"digital signature", "key encipherment", "server auth"})


@dataclass(frozen=True)
class MachineFacts:
    """What is known about the machine a request names."""

    name: str
    node_pool: str
    pool_exists: bool
    addresses: frozenset[str]
    has_node: bool


@dataclass(frozen=True)
class Verdict:
    """``approve`` is None while the answer is not known yet; ``reason`` says why, for the event.

    ``by_hand``: nobody here will ever know it, a person has to look.
    """

    approve: bool | None
    reason: str
    by_hand: bool = False


def concerns_us(request: Mapping[str, Any]) -> bool:
    """Whether a request is a node's and has no answer yet."""
    signer = at(request, "spec.signerName")
    answered = any(
        condition.get("type") in ("Approved", "Denied", "Failed")
        for condition in at(request, "status.conditions") or []
    )
    return signer in (CLIENT_SIGNER, SERVING_SIGNER) and not answered


def node_name(request: Mapping[str, Any]) -> str:
    """The node a request asks for; empty when it asks for none."""
    try:
        subject = _parsed(request).subject
    except ValueError:
        return ""
    names = [str(item.value) for item in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return names[0].removeprefix(_PREFIX) if len(names) == 1 and names[0].startswith(_PREFIX) else ""


def judge(request: Mapping[str, Any], machine: MachineFacts | None) -> Verdict:
    """Decide about one request; ``machine`` is the machine of this cluster that has the name it asks for."""
    spec = request.get("spec") or {}
    try:
        asked = _parsed(request)
    except ValueError as error:
        return Verdict(False, f"the request cannot be read: {error}")
    name = node_name(request)
    groups = [str(item.value) for item in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if not name or groups != [NODE_GROUP]:
        return Verdict(False, "the request is not for a node identity")
    if machine is None:
        return Verdict(False, f"no machine of this cluster is called {name!r}")
    if not machine.pool_exists:
        return Verdict(False, f"machine {name!r} belongs to no node pool of this cluster")
    if spec.get("signerName") == CLIENT_SIGNER:
        return _judge_client(spec, asked, machine)
    return _judge_serving(spec, asked, machine)


def _judge_client(spec: Mapping[str, Any], asked: x509.CertificateSigningRequest, machine: MachineFacts) -> Verdict:
    if _alternative_names(asked):
        return Verdict(False, "a client certificate names no hosts")
    if set(spec.get("usages") or []) not in _CLIENT_USAGES:
        return Verdict(False, "the usages are not those of a node's client certificate")
    user = spec.get("username")
    if user == f"{_PREFIX}{machine.name}":
        return Verdict(True, f"node {machine.name!r} renews its own certificate")
    if user != BOOTSTRAP_USER:
        return Verdict(False, f"{user!r} may not ask for a node's certificate")
    if machine.has_node:
        return Verdict(False, f"machine {machine.name!r} already is a node; only that node may renew its certificate")
    return Verdict(True, f"machine {machine.name!r} of node pool {machine.node_pool} joins")


def _judge_serving(spec: Mapping[str, Any], asked: x509.CertificateSigningRequest, machine: MachineFacts) -> Verdict:
    if spec.get("username") != f"{_PREFIX}{machine.name}":
        return Verdict(False, "a serving certificate can only be asked for by the node itself")
    if set(spec.get("usages") or []) not in _SERVING_USAGES:
        return Verdict(False, "the usages are not those of a serving certificate")
    names = _alternative_names(asked)
    if not names:
        return Verdict(False, "the request names no hosts")
    if not machine.addresses:
        return Verdict(None, f"the addresses of machine {machine.name!r} are not known yet")
    foreign = sorted(names - machine.addresses - {machine.name})
    if foreign:
        return Verdict(False, f"machine {machine.name!r} does not own {', '.join(foreign)}")
    return Verdict(True, f"the addresses belong to machine {machine.name!r}")


def _parsed(request: Mapping[str, Any]) -> x509.CertificateSigningRequest:
    pem = base64.b64decode((request.get("spec") or {}).get("request", ""))
    asked = x509.load_pem_x509_csr(pem)
    if not asked.is_signature_valid:
        raise ValueError("its signature is wrong")
    return asked


def _alternative_names(asked: x509.CertificateSigningRequest) -> set[str]:
    try:
        extension = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {str(item.value) for item in extension.value}


def approval(verdict: Verdict, now: str) -> dict[str, Any]:
    """The condition to add to a request."""
    return {
        "type": "Approved" if verdict.approve else "Denied",
        "status": "True",
        "reason": "MachineOfThisCluster" if verdict.approve else "NotAMachineOfThisCluster",
        "message": verdict.reason,
        "lastUpdateTime": now,
    }


def addresses_of(machine: Mapping[str, Any], instance: Mapping[str, Any] | None) -> frozenset[str]:
    """All addresses a machine is known by, from Cluster API and from its running VM."""
    found: set[str] = set()
    for entry in at(machine, "status.addresses") or []:
        found.add(str(entry.get("address", "")))
    for interface in at(instance, "status.interfaces") or []:
        texts: Iterable[str] = [interface.get("ipAddress") or "", *(interface.get("ipAddresses") or [])]
        found.update(text.partition("/")[0] for text in texts)
    return frozenset(found - {""})
