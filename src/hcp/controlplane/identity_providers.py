"""From `configuration.oauth.identityProviders` to what dex asks, and what of it cannot be followed. Pure.

One provider that is wrong is left out and told; the others work on.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from hcp.api.paths import at
from hcp.controlplane import htpasswd
from hcp.controlplane.params import Manifest
from hcp.pki import readable_certificates

# Where the files are in the pod.
CONFIG_DIR, USERS_DIR = "/etc/dex/config", "/etc/dex/users"
SUPPORTED = ("HTPasswd", "OpenID", "LDAP", "GitHub", "GitLab", "Google")
HTPASSWD_KEY, SECRET_KEY, BIND_KEY, CA_KEY = "htpasswd", "clientSecret", "bindPassword", "ca.crt"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
# (kind, name) of what a provider refers to, and what is in it.
Given = Mapping[tuple[str, str], Mapping[str, bytes]]


class Refused(ValueError):
    """Why one provider cannot be used."""


@dataclass
class Providers:
    """What dex gets."""

    connectors: list[Manifest] = field(default_factory=list)
    # Files beside its configuration, by name; another content starts it anew.
    files: dict[str, bytes] = field(default_factory=dict)
    # Name of a provider → the file of its users, which is read at every login.
    users: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    # What is followed in part.
    notes: list[str] = field(default_factory=list)


def references(providers: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """(kind, name) of all Secrets and ConfigMaps they name."""
    found = set()
    for provider in providers:
        for block in (value for value in provider.values() if isinstance(value, Mapping)):
            for key in ("fileData", "clientSecret", "bindPassword"):
                found.add(("Secret", str(at(block, f"{key}.name") or "")))
            found.add(("ConfigMap", str(at(block, "ca.name") or "")))
    return {one for one in found if one[1]}


def build(providers: Iterable[Mapping[str, Any]], given: Given, issuer: str) -> Providers:
    """Everything for dex; `issuer` is where it is reached."""
    made = Providers()
    seen: set[str] = set()
    for number, provider in enumerate(providers):
        name, kind = str(provider.get("name") or ""), str(provider.get("type") or "")
        one = _One(number, name, kind, provider, given, f"{issuer}/callback")
        try:
            if problem := _name_problem(name, seen):
                raise Refused(problem)
            seen.add(name)
            if kind not in SUPPORTED:
                raise Refused(f"type {kind or 'nothing'} is not supported; these are: {', '.join(SUPPORTED)}")
            if kind == "HTPasswd":
                made.users[name] = one.users(made)
            else:
                made.connectors.append(one.connector(made))
        except Refused as exc:
            made.problems.append(f"identity provider {name or number}: {exc}")
        if provider.get("mappingMethod") not in (None, "", "claim"):
            made.notes.append(f"identity provider {name}: mappingMethod {provider['mappingMethod']} means claim")
    return made


def _name_problem(name: str, seen: set[str]) -> str:
    if not name:
        return "it has no name"
    if name in seen:
        return "there are two of this name"
    return "its name may not hold any of / : %" if set(name) & set("/:%") else ""


@dataclass(frozen=True)
class _One:
    number: int
    name: str
    kind: str
    provider: Mapping[str, Any]
    given: Given
    callback: str

    @property
    def block(self) -> Mapping[str, Any]:
        key = {"HTPasswd": "htpasswd", "OpenID": "openID", "LDAP": "ldap"}.get(self.kind, self.kind.lower())
        found: Mapping[str, Any] = self.provider.get(key) or {}
        if not found:
            raise Refused(f"{key} says nothing")
        return found

    def users(self, made: Providers) -> bytes:
        content = self._of("Secret", "fileData", HTPASSWD_KEY, required=True)
        problems = htpasswd.problems(content)
        made.problems += [f"identity provider {self.name}: {text}" for text in problems]
        return content

    def connector(self, made: Providers) -> Manifest:
        build = {"OpenID": self._openid, "LDAP": self._ldap, "GitHub": self._github, "GitLab": self._gitlab}
        config = build.get(self.kind, self._google)(made)
        identifier = self.name if _PLAIN.fullmatch(self.name) and self.name != "password" else f"idp-{self.number}"
        kinds = {"OpenID": "oidc"}
        return {"type": kinds.get(self.kind, self.kind.lower()), "id": identifier, "name": self.name, "config": config}

    def _client(self) -> Manifest:
        client = str(self.block.get("clientID") or "")
        if not client:
            raise Refused("clientID is missing")
        secret = self._of("Secret", "clientSecret", SECRET_KEY, required=True).decode(errors="replace").strip()
        return {"clientID": client, "clientSecret": secret, "redirectURI": self.callback}

    def _openid(self, made: Providers) -> Manifest:
        block = self.block
        issuer = str(block.get("issuer") or "")
        if not issuer.startswith("https://"):
            raise Refused(f"issuer {issuer[:100]!a} does not begin with https://")
        claims = block.get("claims") or {}
        config = self._client() | {
            "issuer": issuer,
            "scopes": ["openid", *dict.fromkeys(["profile", *(block.get("extraScopes") or ())])],
            "getUserInfo": True,
        }
        mapping = {
            target: self._first(claims, source, made)
            for source, target in (
                ("preferredUsername", "preferred_username"),
                ("email", "email"),
                ("groups", "groups"),
            )
        }
        if chosen := {key: value for key, value in mapping.items() if value}:
            config |= {"claimMapping": chosen, "overrideClaimMapping": True}
        if name := self._first(claims, "name", made):
            config["userNameKey"] = name
        if mapping["groups"]:
            config["insecureEnableGroups"] = True
        if block.get("extraAuthorizeParameters"):
            made.notes.append(f"identity provider {self.name}: extraAuthorizeParameters are not sent")
        if path := self._ca(made):
            config["rootCAs"] = [path]
        return config

    def _ldap(self, made: Providers) -> Manifest:
        block = self.block
        where = _ldap_url(str(block.get("url") or ""))
        attributes = block.get("attributes") or {}
        search = {"baseDN": where.base, "username": where.attribute, "scope": where.scope}
        if where.filter:
            search["filter"] = where.filter
        search["idAttr"] = _dn(self._first(attributes, "id", made) or "DN")
        search["emailAttr"] = self._first(attributes, "email", made) or "mail"
        search["nameAttr"] = self._first(attributes, "name", made) or where.attribute
        search["preferredUsernameAttr"] = self._first(attributes, "preferredUsername", made) or where.attribute
        config: Manifest = {"host": where.host, "userSearch": search, "usernamePrompt": "Username"}
        if not where.encrypted:
            config["insecureNoSSL" if block.get("insecure") else "startTLS"] = True
        if block.get("bindDN"):
            password = self._of("Secret", "bindPassword", BIND_KEY, required=True).decode(errors="replace").strip()
            config |= {"bindDN": str(block["bindDN"]), "bindPW": password}
        if path := self._ca(made):
            config["rootCA"] = path
        return config

    def _github(self, made: Providers) -> Manifest:
        block = self.block
        teams: dict[str, list[str]] = {str(one): [] for one in block.get("organizations") or ()}
        for team in block.get("teams") or ():
            organization, divided, short = str(team).partition("/")
            if not divided or not organization or not short:
                raise Refused(f"team {str(team)[:100]!a} is not written as organization/team")
            teams.setdefault(organization, []).append(short)
        config = self._client() | {"teamNameField": "slug"}
        if teams:
            config["orgs"] = [{"name": name, **({"teams": those} if those else {})} for name, those in teams.items()]
        if host := block.get("hostname"):
            config["hostName"] = str(host)
        if path := self._ca(made):
            config["rootCA"] = path
        return config

    def _gitlab(self, made: Providers) -> Manifest:
        url = str(self.block.get("url") or "")
        if not url.startswith("https://"):
            raise Refused(f"url {url[:100]!a} does not begin with https://")
        config = self._client() | {"baseURL": url.rstrip("/")}
        if self._ca(made):
            config["rootCAData"] = base64.b64encode(made.files.pop(f"ca-{self.number}.crt")).decode()
        return config

    def _google(self, made: Providers) -> Manifest:
        domain = str(self.block.get("hostedDomain") or "")
        if not domain:
            raise Refused("hostedDomain is missing: without it everybody with an account at Google could log in")
        return self._client() | {"hostedDomains": [domain]}

    def _first(self, block: Mapping[str, Any], name: str, made: Providers) -> str:
        listed = [str(one) for one in block.get(name) or ()]
        if len(listed) > 1:
            made.notes.append(f"identity provider {self.name}: of {name} only {listed[0]} is looked at")
        return listed[0] if listed else ""

    def _ca(self, made: Providers) -> str:
        content = self._of("ConfigMap", "ca", CA_KEY)
        if not content:
            return ""
        if not readable_certificates(content):
            raise Refused(f"the ConfigMap {at(self.block, 'ca.name')} holds no certificates")
        name = f"ca-{self.number}.crt"
        made.files[name] = content
        return f"{CONFIG_DIR}/{name}"

    def _of(self, kind: str, field_name: str, key: str, *, required: bool = False) -> bytes:
        name = str(at(self.block, f"{field_name}.name") or "")
        if not name:
            if required:
                raise Refused(f"{field_name} names no {kind}")
            return b""
        content = self.given.get((kind, name), {}).get(key, b"")
        if not content:
            raise Refused(f"the {kind} {name} with key {key} does not exist beside the HostedCluster")
        return content


@dataclass(frozen=True)
class _Ldap:
    host: str
    encrypted: bool
    base: str
    attribute: str
    scope: str
    filter: str


def _ldap_url(text: str) -> _Ldap:
    """RFC 4516: scheme://host:port/base?attributes?scope?filter."""
    try:
        parsed = urlsplit(text)
        port = parsed.port
    except ValueError as exc:
        raise Refused(f"url {text[:100]!a} cannot be read: {exc}") from None
    if parsed.scheme not in ("ldap", "ldaps") or not parsed.hostname:
        raise Refused(f"url {text[:100]!a} does not look like ldaps://host/ou=people,dc=example?uid")
    encrypted = parsed.scheme == "ldaps"
    words = [unquote(word) for word in parsed.query.split("?")] + ["", "", ""]
    attribute, scope, query = words[0].split(",")[0], words[1], words[2]
    if scope not in ("", "sub", "one"):
        raise Refused(f"scope {scope[:100]!a} of the url is neither sub nor one")
    host = f"[{parsed.hostname}]" if ":" in parsed.hostname else parsed.hostname
    base = unquote(parsed.path.lstrip("/"))
    if query and not query.startswith("("):
        query = f"({query})"
    return _Ldap(
        f"{host}:{port or (636 if encrypted else 389)}", encrypted, base, attribute or "uid", scope or "sub", query
    )


def _dn(attribute: str) -> str:
    return "DN" if attribute.lower() == "dn" else attribute
