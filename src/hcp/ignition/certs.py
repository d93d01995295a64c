"""The bootstrap server's certificate authority and serving certificate, as Secrets.

The authority's certificate goes into every VM's pointer document, so it is made once. The serving certificate follows
the names the server is published under and is renewed before it ends.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp import pki
from hcp.api.addresses import is_address
from hcp.api.names import IGNITION_SERVER, LABEL_IGNITION_SERVER, OPERATOR_NAMESPACE, subdomain_problem
from hcp.ignition.store import LABEL_CERTIFICATE

CA_SECRET = "ignition-server-ca-cert"
SERVING_SECRET = "ignition-server-serving-cert"


# Names of all clusters stand in one certificate, and machines take no handshake beyond 64 KiB.
MAX_NAMES = 40_000
# Of these, as many bytes as the clusters of one namespace may use.
MAX_NAMES_OF_ONE = 8_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A name that a hosted cluster (`namespace/name`) wants in the certificate."""

    host: str
    cluster: str
    created: str = ""


@dataclass(slots=True)
class Chosen:
    """The names that go into the certificate, and why others do not, by cluster."""

    hosts: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def choose(own: Iterable[str], wanted: Iterable[Wanted]) -> Chosen:
    """Which names are taken. A bad one, or one too many, is left out: it is its cluster's trouble and nobody else's."""
    found = Chosen([host for host in dict.fromkeys(own) if can_be_certified(host)])
    known = set(found.hosts)
    used: dict[str, int] = {}
    for one in sorted(wanted, key=lambda one: (one.created, one.cluster, one.host)):
        if one.host in known:
            continue
        namespace = one.cluster.partition("/")[0]
        size = len(one.host.encode()) + 2
        if not can_be_certified(one.host):
            found.refused[one.cluster] = f"{one.host[:100]!a} cannot be a name in a certificate"
        elif used.get(namespace, 0) + size > MAX_NAMES_OF_ONE or sum(used.values()) + size > MAX_NAMES:
            found.refused[one.cluster] = f"{one.host} does not fit into the certificate beside the names before it"
        else:
            used[namespace] = used.get(namespace, 0) + size
            known.add(one.host)
            found.hosts.append(one.host)
    return found


def can_be_certified(host: str) -> bool:
    """Whether a certificate can be made out to it: an address, or a DNS name as DNS has it."""
    return is_address(host) or subdomain_problem(host.lower()) is None


def own_names(namespace: str = OPERATOR_NAMESPACE) -> list[str]:
    """The names the server has inside the management cluster."""
    return [
        IGNITION_SERVER,
        f"{IGNITION_SERVER}.{namespace}.svc",
        f"{IGNITION_SERVER}.{namespace}.svc.cluster.local",
        "localhost",
    ]


def serving_leaf(hosts: Iterable[str], namespace: str = OPERATOR_NAMESPACE) -> pki.Leaf:
    """The certificate for all published host names and addresses that one can be made out to."""
    names: set[str] = set(own_names(namespace))
    addresses: set[str] = {"127.0.0.1"}
    for host in filter(can_be_certified, hosts):
        (addresses if is_address(host) else names).add(host)
    return pki.Leaf(IGNITION_SERVER, dns=tuple(sorted(names)), ips=tuple(sorted(addresses)), usage="server")


def ca_secret(pair: pki.KeyPair, namespace: str = OPERATOR_NAMESPACE) -> dict[str, Any]:
    """The Secret of the authority (keys ``ca.crt`` and ``ca.key``)."""
    return _secret(CA_SECRET, namespace, {"ca.crt": pair.cert_pem, "ca.key": pair.key_pem})


def serving_secret(pair: pki.KeyPair, ca_pem: bytes, namespace: str = OPERATOR_NAMESPACE) -> dict[str, Any]:
    """The Secret the server watches for its certificate."""
    data = {"tls.crt": pair.cert_pem, "tls.key": pair.key_pem, "ca.crt": ca_pem}
    secret = _secret(SERVING_SECRET, namespace, data)
    secret["metadata"]["labels"] = {LABEL_IGNITION_SERVER: LABEL_CERTIFICATE}
    return secret


def read_pair(secret: Mapping[str, Any], cert: str, key: str) -> pki.KeyPair:
    """A key pair out of a Secret."""
    data = secret.get("data") or {}
    return pki.KeyPair(base64.b64decode(data.get(cert, "")), base64.b64decode(data.get(key, "")))


def _secret(name: str, namespace: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
