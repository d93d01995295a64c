"""From identity providers, as OpenShift writes them, to what dex asks."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.controlplane import identity_providers
from hcp.controlplane.identity_providers import Providers
from hcp.pki import new_ca

ISSUER = "https://oauth.apps.example"
CA = new_ca("somebody").cert_pem
GIVEN = {
    ("Secret", "client"): {"clientSecret": b"$ecret\n"},
    ("Secret", "bind"): {"bindPassword": b"hidden"},
    ("Secret", "users"): {"htpasswd": b"alice:$2y$05$abc\nbob:{SHA}abc\n"},
    ("ConfigMap", "ca"): {"ca.crt": CA},
}
CLIENT = {"clientID": "hcp", "clientSecret": {"name": "client"}}


def built(*providers: dict[str, Any]) -> Providers:
    return identity_providers.build(providers, GIVEN, ISSUER)


def config(kind: str, **block: Any) -> dict[str, Any]:
    key = {"OpenID": "openID"}.get(kind, kind.lower())
    made = built({"name": "one", "type": kind, key: block})
    assert made.problems == []
    (connector,) = made.connectors
    assert connector["id"] == connector["name"] == "one"
    found: dict[str, Any] = connector["config"]
    return found


def problems(kind: str, **block: Any) -> str:
    key = {"OpenID": "openID", "HTPasswd": "htpasswd"}.get(kind, kind.lower())
    made = built({"name": "one", "type": kind, key: block})
    assert made.connectors == []
    return "; ".join(made.problems)


def test_files_of_users_are_taken_as_they_are() -> None:
    made = built({"name": "team", "type": "HTPasswd", "htpasswd": {"fileData": {"name": "users"}}})
    assert made.users == {"team": GIVEN[("Secret", "users")]["htpasswd"]}
    assert not made.connectors and not made.problems


def test_an_issuer_is_asked_with_the_claims_that_are_named() -> None:
    claims = {"preferredUsername": ["nick"], "groups": ["roles", "teams"]}
    made = config(
        "OpenID", **CLIENT, issuer="https://id.example", ca={"name": "ca"}, claims=claims, extraScopes=["email"]
    )
    assert made["issuer"] == "https://id.example"
    assert made["clientSecret"] == "$ecret"
    assert made["redirectURI"] == f"{ISSUER}/callback"
    assert made["scopes"] == ["openid", "profile", "email"]
    assert made["claimMapping"] == {"preferred_username": "nick", "groups": "roles"}
    assert made["insecureEnableGroups"] is True
    assert made["rootCAs"] == ["/etc/dex/config/ca-0.crt"]


def test_what_is_followed_in_part_is_told() -> None:
    block = {**CLIENT, "issuer": "https://id.example", "claims": {"groups": ["roles", "teams"]}}
    block["extraAuthorizeParameters"] = {"prompt": "login"}
    made = built({"name": "one", "type": "OpenID", "mappingMethod": "lookup", "openID": block})
    assert any("only roles" in note for note in made.notes)
    assert any("extraAuthorizeParameters" in note for note in made.notes)
    assert any("lookup" in note for note in made.notes)


@pytest.mark.parametrize(
    ("url", "insecure", "expected"),
    [
        ("ldaps://ldap.example/ou=people,dc=example?uid", False, {"host": "ldap.example:636"}),
        ("ldap://ldap.example/dc=example?cn", False, {"host": "ldap.example:389", "startTLS": True}),
        ("ldap://[2001:db8::1]:3389/dc=example", True, {"host": "[2001:db8::1]:3389", "insecureNoSSL": True}),
    ],
)
def test_a_directory_is_reached_as_its_url_says(url: str, insecure: bool, expected: dict[str, Any]) -> None:
    made = config("LDAP", url=url, insecure=insecure)
    assert {key: made.get(key) for key in expected} == expected
    assert ("startTLS" in made, "insecureNoSSL" in made) == ("startTLS" in expected, "insecureNoSSL" in expected)


def test_a_search_in_a_directory_has_base_attribute_scope_and_filter() -> None:
    url = "ldaps://ldap.example/ou=some%20people,dc=example?mail?one?(objectClass=person)"
    attributes = {"id": ["dn"], "name": ["cn"], "preferredUsername": ["uid"]}
    made = config("LDAP", url=url, bindDN="cn=reader", bindPassword={"name": "bind"}, attributes=attributes)
    assert made["userSearch"] == {
        "baseDN": "ou=some people,dc=example",
        "username": "mail",
        "scope": "one",
        "filter": "(objectClass=person)",
        "idAttr": "DN",
        "emailAttr": "mail",
        "nameAttr": "cn",
        "preferredUsernameAttr": "uid",
    }
    assert (made["bindDN"], made["bindPW"]) == ("cn=reader", "hidden")


def test_organizations_and_teams_are_asked_for() -> None:
    made = config("GitHub", **CLIENT, organizations=["one"], teams=["two/devs", "two/ops"])
    assert made["orgs"] == [{"name": "one"}, {"name": "two", "teams": ["devs", "ops"]}]


def test_the_other_kinds_have_what_they_need() -> None:
    assert config("GitLab", **CLIENT, url="https://git.example/")["baseURL"] == "https://git.example"
    assert config("Google", **CLIENT, hostedDomain="example.com")["hostedDomains"] == ["example.com"]


def test_what_is_wrong_is_told_in_words() -> None:
    assert "clientID is missing" in problems("OpenID", issuer="https://id.example")
    assert "does not begin with https://" in problems("OpenID", **CLIENT, issuer="http://id.example")
    assert "Secret other with key clientSecret" in problems(
        "OpenID", clientID="x", clientSecret={"name": "other"}, issuer="https://id.example"
    )
    assert "ldaps://host" in problems("LDAP", url="https://ldap.example")
    assert "organization/team" in problems("GitHub", **CLIENT, teams=["devs"])
    assert "everybody" in problems("Google", **CLIENT)
    assert "holds no certificates" not in problems("GitLab", **CLIENT, url="http://git.example")
    assert "not supported" in problems("BasicAuth", url="https://auth.example")
    assert "says nothing" in problems("HTPasswd")


def test_one_that_is_wrong_keeps_no_other_out() -> None:
    good = {"name": "good", "type": "GitLab", "gitlab": {**CLIENT, "url": "https://git.example"}}
    made = built({"name": "bad", "type": "Keystone"}, good, {**good, "name": "good"}, {**good, "name": "a/b"})
    assert [one["id"] for one in made.connectors] == ["good"]
    assert len(made.problems) == 3


def test_names_that_fit_no_address_get_another_id() -> None:
    provider = {"name": "our users", "type": "Google", "google": {**CLIENT, "hostedDomain": "example.com"}}
    (connector,) = built(
        provider,
    ).connectors
    assert (connector["id"], connector["name"]) == ("idp-0", "our users")
    (connector,) = built({**provider, "name": "password"}).connectors
    assert connector["id"] == "idp-0", "that one is the cluster's own"


def test_all_that_is_named_is_looked_for() -> None:
    providers = [
        {"name": "a", "type": "HTPasswd", "htpasswd": {"fileData": {"name": "users"}}},
        {"name": "b", "type": "LDAP", "ldap": {"bindPassword": {"name": "bind"}, "ca": {"name": "ca"}}},
        {"name": "c", "type": "GitHub", "github": CLIENT},
    ]
    assert identity_providers.references(providers) == set(GIVEN)
