"""`configuration.apiServer.servingCerts`: certificates of the owner's, for further names of the API server. Pure.

kube-apiserver reads their files again when they change: another certificate for the same names rolls nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane.certs import hosts
from hcp.controlplane.meta import secret
from hcp.controlplane.params import Manifest, NamedCert, Params
from hcp.pki import KeyPair, names_in, pair_problem

FIELD = "configuration.apiServer.servingCerts.namedCertificates"
SECRET, FOLDER = "kas-named-certs", "named-certs"
CERT, KEY, CA = "tls.crt", "tls.key", "ca.crt"
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Found:
    """What can be shown, and why the rest cannot."""

    certs: tuple[NamedCert, ...] = ()
    files: Files = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    # Of a certificate for `kubeAPIServerDNSName`: whom its kubeconfig has to trust.
    trust: bytes = b""


def asked(spec: Mapping[str, Any]) -> list[NamedCert]:
    made = []
    for one in at(spec, FIELD) or ():
        if name := at(one, "servingCertificate.name"):
            made.append(NamedCert(str(name), tuple(str(host).lower() for host in one.get("names") or ())))
    return made


def choose(p: Params, wanted: Iterable[NamedCert], given: Mapping[str, Mapping[str, bytes]], old: Files) -> Found:
    """`given`: Secrets beside the HostedCluster. Of one that cannot be used, what the API server has (`old`) stays."""
    certs: list[NamedCert] = []
    files: dict[str, bytes] = {}
    problems: list[str] = []
    trust = b""
    for one in wanted:
        data = given.get(one.secret, {})
        problem = _problem(p, one, given)
        pair = KeyPair(data.get(CERT, b""), data.get(KEY, b""))
        if problem:
            problems.append(f"{FIELD}: {problem}")
            pair = KeyPair(old.get(f"{one.secret}.crt", b""), old.get(f"{one.secret}.key", b""))
            if not pair.cert_pem or _collision(p, one.names):
                continue
        certs.append(one)
        files |= {f"{one.secret}.crt": pair.cert_pem, f"{one.secret}.key": pair.key_pem}
        if p.api_dns_name and any(_covers(host, p.api_dns_name) for host in one.names or names_in(pair.cert_pem)):
            trust += b"".join(part.rstrip(b"\n") + b"\n" for part in (pair.cert_pem, data.get(CA, b"")) if part)
    return Found(tuple(certs), files, tuple(problems), trust)


def manifest(p: Params, files: Files) -> Manifest:
    return secret(p, SECRET, dict(files))


def arguments(certs: Iterable[NamedCert], root: str) -> list[str]:
    made = []
    for one in certs:
        file = f"{root}/{FOLDER}/{one.secret}"
        hosts_ = f":{','.join(one.names)}" if one.names else ""
        made.append(f"--tls-sni-cert-key={file}.crt,{file}.key{hosts_}")
    return made


def _problem(p: Params, one: NamedCert, given: Mapping[str, Mapping[str, bytes]]) -> str:
    where = f"{p.cluster_namespace}/{one.secret}"
    if one.secret not in given:
        return f"the Secret {where} does not exist"
    for host in one.names:
        if names.subdomain_problem(host.removeprefix("*.")):
            return f"{host[:100]!a} cannot be the name of a host"
    data = given[one.secret]
    pair = KeyPair(data.get(CERT, b""), data.get(KEY, b""))
    if problem := pair_problem(pair):
        return f"the Secret {where} {problem}"
    if taken := _collision(p, one.names or names_in(pair.cert_pem)):
        return (
            f"{taken} is a name under which nodes and the control plane reach the API by the cluster's own authority; "
            "give the API a name of its own (kubeAPIServerDNSName) and the certificate for that"
        )
    return ""


def _collision(p: Params, covered: Iterable[str]) -> str:
    """Names that have to keep the certificate of the cluster's own authority."""
    own = [host for host in hosts(p)[0] if host != p.api_dns_name]
    return next((host for host in own if any(_covers(one, host) for one in covered)), "")


def _covers(pattern: str, host: str) -> bool:
    """As TLS compares them: a star stands for the first label."""
    if pattern.startswith("*."):
        return host.partition(".")[2].lower() == pattern[2:].lower()
    return pattern.lower() == host.lower()
