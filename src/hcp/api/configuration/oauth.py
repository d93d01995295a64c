"""`configuration.oauth`: identity providers and tokens of the guest's own OAuth server."""

from __future__ import annotations

from hcp.api.configuration.references import named
from hcp.api.schema import INT32, Schema, array, boolean, integer, mapping, obj, rule, string


def oauth() -> Schema:
    fields = {
        "identityProviders": array(_provider(), "Who knows the users.", max_items=32),
        "templates": obj(
            {name: named("Secret with a page.") for name in ("login", "providerSelection", "error")},
            "Pages of the login.",
        ),
        "tokenConfig": _tokens(),
    }
    return obj(fields, "Settings of the OAuth server.")


def _tokens() -> Schema:
    fields = {
        "accessTokenMaxAgeSeconds": integer("How long a token lives.", maximum=INT32),
        "accessTokenInactivityTimeout": string(
            "Tokens unused for longer than this stop working; at least 300s.",
            max_len=64,
            rules=[rule("duration(self).getSeconds() >= 300", "accessTokenInactivityTimeout must be at least 300s")],
        ),
        "accessTokenInactivityTimeoutSeconds": integer("Old spelling of the timeout.", maximum=INT32),
    }
    return obj(fields, "How long tokens live.")


def _text(doc: str = "") -> Schema:
    return string(doc, max_len=2048)


def _texts(doc: str = "") -> Schema:
    return array(_text(), doc, max_items=128)


def _client(**more: Schema) -> dict[str, Schema]:
    return {"clientID": _text("The client's id."), "clientSecret": named("Secret with clientSecret."), **more}


def _provider() -> Schema:
    ca = named("ConfigMap with ca.crt of the server.")
    remote = {
        "url": _text("Where the server answers."),
        "ca": ca,
        "tlsClientCert": named("Secret with tls.crt."),
        "tlsClientKey": named("Secret with tls.key."),
    }
    claims = {name: _texts(f"Claims with the {name}.") for name in ("preferredUsername", "name", "email", "groups")}
    attributes = {name: _texts(f"Attributes with the {name}.") for name in ("id", "preferredUsername", "name", "email")}
    kinds = {
        "basicAuth": remote,
        "github": _client(
            organizations=_texts("Organizations."), teams=_texts("Teams."), hostname=_text("Own server."), ca=ca
        ),
        "gitlab": _client(url=_text("Where the server answers."), ca=ca),
        "google": _client(hostedDomain=_text("Domain of the users.")),
        "htpasswd": {"fileData": named("Secret with htpasswd.")},
        "keystone": {**remote, "domainName": _text("Domain of the users.")},
        "ldap": {
            "url": _text("Server, base and filter."),
            "bindDN": _text("Who asks."),
            "bindPassword": named("Secret with bindPassword."),
            "insecure": boolean("Without TLS."),
            "ca": ca,
            "attributes": obj(attributes, "Which attribute is what."),
        },
        "openID": _client(
            ca=ca,
            issuer=_text("The issuer's URL."),
            extraScopes=_texts("Further scopes."),
            extraAuthorizeParameters=mapping(_text(), "Further parameters.", max_props=32),
            claims=obj(claims, "Which claim is what."),
        ),
        "requestHeader": {
            "loginURL": _text("Where users log in."),
            "challengeURL": _text("Where programs log in."),
            "ca": ca,
            "clientCommonNames": _texts("Names of client certificates."),
            "headers": _texts("Headers with the user's name."),
            "preferredUsernameHeaders": _texts("Headers with the preferred name."),
            "nameHeaders": _texts("Headers with the full name."),
            "emailHeaders": _texts("Headers with the address."),
        },
    }
    fields = {
        "name": string("Name of the provider, shown at login.", max_len=253),
        "mappingMethod": string("How identities become users.", max_len=64),
        "type": string("Which kind.", max_len=64),
        **{kind: obj(block, f"Settings of type {kind}.") for kind, block in kinds.items()},
    }
    return obj(fields)
