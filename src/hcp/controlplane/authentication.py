"""Whose tokens kube-apiserver believes, as a file that it reads again when it changes. Pure.

Either the cluster's own OAuth server, or one issuer of the owner's (`configuration.authentication` of type OIDC).
Names that Kubernetes keeps for itself never come out of a token, whatever an issuer says.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane.meta import config_map
from hcp.controlplane.params import Manifest, Params
from hcp.pki import readable_certificates

CONFIG = "auth-config"
FILE = "auth-config.json"
# Who `kubeadmin` is in the guest, as in OpenShift.
KUBEADMIN, KUBEADMIN_USER = "kubeadmin", "kube:admin"
# Where the OAuth server asks for passwords of the cluster's own users.
PASSWORDS = "password"
RESERVED = "system:"
DIRECT, NOBODY = "OIDC", "None"


def is_direct(spec: Mapping[str, Any]) -> bool:
    return bool(at(spec, "configuration.authentication.type") == DIRECT)


def integrated(spec: Mapping[str, Any]) -> bool:
    """Whether the cluster shall have an OAuth server of its own."""
    return at(spec, "configuration.authentication.type") not in (DIRECT, NOBODY)


def config(p: Params, issuers: list[Manifest]) -> Manifest:
    """No issuer at all is good too: the API server then waits for the first one."""
    body = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": issuers}
    return config_map(p, CONFIG, {FILE: json.dumps(body, indent=1, sort_keys=True) + "\n"})


def subject(user: str, connector: str) -> str:
    """How dex names a user in tokens: both words as a message of protobuf, in base64."""
    fields = b"".join(
        bytes([number << 3 | 2, len(text)]) + text for number, text in ((1, user.encode()), (2, connector.encode()))
    )
    return base64.urlsafe_b64encode(fields).decode().rstrip("=")


def own(issuer: str, ca: bytes) -> Manifest:
    """The cluster's own OAuth server. Users are called as their provider calls them, as in OpenShift."""
    administrator = f'claims.sub == "{subject(KUBEADMIN, PASSWORDS)}"'
    first = 'claims.?preferred_username.orValue("")'
    verified = 'claims.?email_verified.orValue(false) ? claims.?email.orValue("") : ""'
    name = f'{first} != "" ? {first} : ({verified})'
    return {
        "issuer": _issuer(issuer, [names.OAUTH_CLIENT], ca.decode()),
        "claimMappings": {
            "username": {"expression": f'{administrator} ? "{KUBEADMIN_USER}" : ({name})'},
            "groups": {"expression": f'dyn(claims.?groups.orValue([])).filter(one, !one.startsWith("{RESERVED}"))'},
            "uid": {"claim": "sub"},
        },
        "claimValidationRules": [
            {
                "expression": f'{administrator} || !({name}).contains(":")',
                "message": "names of users have no colon in them",
            }
        ],
        "userValidationRules": _unreserved(),
    }


def direct(provider: Mapping[str, Any], ca: str) -> Manifest:
    """An issuer of the owner's, as `oidcProviders` describes it."""
    given = provider["issuer"]
    mappings = provider.get("claimMappings") or {}
    made: Manifest = {
        "issuer": _issuer(given["issuerURL"], list(given["audiences"]), ca, given.get("discoveryURL") or ""),
        "claimMappings": {"username": _username(given["issuerURL"], mappings.get("username") or {})},
        "userValidationRules": _unreserved(),
    }
    groups = mappings.get("groups") or {}
    if groups.get("claim"):
        made["claimMappings"]["groups"] = {"claim": groups["claim"], "prefix": groups.get("prefix") or ""}
    if claim := at(mappings, "uid.claim"):
        made["claimMappings"]["uid"] = {"claim": claim}
    rules = [one["requiredClaim"] for one in provider.get("claimValidationRules") or () if one.get("requiredClaim")]
    if rules:
        made["claimValidationRules"] = [dict(one) for one in rules]
    return made


def problems(spec: Mapping[str, Any], service_account_issuer: str, ca: str | None) -> list[str]:
    """Why an issuer of the owner's cannot be handed to the API server: one it refuses would keep it from starting.

    `ca` is what the ConfigMap holds, None where it is named and not there.
    """
    where = "configuration.authentication.oidcProviders"
    providers = at(spec, where) or []
    if not providers:
        return [f"{where} is empty: name the issuer of tokens"]
    provider = providers[0]
    found = []
    url = str(at(provider, "issuer.issuerURL") or "")
    if url == service_account_issuer:
        found.append(f"{where}: {url} issues the tokens of service accounts, users need another one")
    if ca is None:
        name = at(provider, "issuer.issuerCertificateAuthority.name")
        found.append(f"{where}: the ConfigMap {name} with key {names.CA_BUNDLE_KEY} does not exist")
    elif ca and not readable_certificates(ca.encode()):
        found.append(f"{where}: the ConfigMap of issuerCertificateAuthority holds no certificates")
    found += [f"{where}: {text}" for text in _expressions(provider)]
    return found


def _expressions(provider: Mapping[str, Any]) -> list[str]:
    """A wrong one would keep the API server from starting, and nobody but it can tell."""
    mappings = provider.get("claimMappings") or {}
    asked = [
        f"claimMappings.{name}.expression" for name in ("username", "groups", "uid") if _expression(mappings, name)
    ]
    asked += ["claimMappings.extra"] if mappings.get("extra") else []
    rules = provider.get("claimValidationRules") or ()
    asked += ["claimValidationRules of type CEL"] if any(one.get("cel") for one in rules) else []
    asked += ["userValidationRules"] if provider.get("userValidationRules") else []
    return [f"{text} is not followed, use claims" for text in asked]


def _expression(mappings: Mapping[str, Any], name: str) -> bool:
    return bool((mappings.get(name) or {}).get("expression"))


def _issuer(url: str, audiences: list[str], ca: str, discovery: str = "") -> Manifest:
    made: Manifest = {"url": url, "audiences": audiences}
    if len(audiences) > 1:
        made["audienceMatchPolicy"] = "MatchAny"
    if ca:
        made["certificateAuthority"] = ca
    if discovery:
        made["discoveryURL"] = discovery
    return made


def _username(issuer: str, given: Mapping[str, Any]) -> Manifest:
    """Without a policy names that are no addresses get the issuer in front, as Kubernetes has always done it."""
    claim, policy = str(given.get("claim") or "sub"), given.get("prefixPolicy") or ""
    if policy == "Prefix":
        return {"claim": claim, "prefix": str(at(given, "prefix.prefixString") or "")}
    if policy == "NoPrefix" or claim == "email":
        return {"claim": claim, "prefix": ""}
    return {"claim": claim, "prefix": f"{issuer}#"}


def _unreserved() -> list[Manifest]:
    return [
        {
            "expression": f'!user.username.startsWith("{RESERVED}")',
            "message": f"names that begin with {RESERVED} are reserved",
        },
        {
            "expression": f'user.groups.all(one, !one.startsWith("{RESERVED}"))',
            "message": f"groups that begin with {RESERVED} are reserved",
        },
    ]
