"""`configuration.authentication`: who may log in to the guest, and what its users are called."""

from __future__ import annotations

from hcp.api.configuration.references import named
from hcp.api.schema import DNS_SUBDOMAIN_PATTERN, Schema, array, obj, rule, string

_RESERVED = ("kubernetes.io", "k8s.io", "openshift.io")


def authentication() -> Schema:
    webhook = obj({"kubeConfig": named("Secret with a kubeconfig.")}, required=("kubeConfig",))
    fields = {
        "type": string("Who tells who a user is.", enum=("", "None", "IntegratedOAuth", "OIDC")),
        "oauthMetadata": named("ConfigMap with the metadata of another OAuth server."),
        "oidcProviders": array(_provider(), "Issuers of tokens.", max_items=1, keys=("name",)),
        "serviceAccountIssuer": string("Issuer of service account tokens.", max_len=2048),
        "webhookTokenAuthenticator": {**webhook, "description": "Another server that knows tokens."},
        "webhookTokenAuthenticators": array(
            obj({"kubeConfig": named("Secret with a kubeconfig.")}), "Old spelling.", max_items=1
        ),
    }
    return obj(fields, "How users are authenticated.")


def _provider() -> Schema:
    fields = {
        "name": string("Name of the provider.", min_len=1, max_len=253),
        "issuer": _issuer(),
        "claimMappings": _mappings(),
        "claimValidationRules": array(_claim_rule(), "What a token must hold.", max_items=64),
        "userValidationRules": array(
            _user_rule(), "What a user must be.", min_items=1, max_items=64, keys=("expression",)
        ),
        "oidcClients": array(
            _client(),
            "Clients of parts of the platform.",
            max_items=20,
            keys=("componentNamespace", "componentName"),
        ),
    }
    return obj(fields, required=("name", "issuer", "claimMappings"))


def _issuer() -> Schema:
    https = [
        rule("isURL(self)", "must be a URL"),
        rule("isURL(self) && url(self).getScheme() == 'https'", "must begin with https://"),
        rule("isURL(self) && url(self).getQuery() == {}", "must not have a query"),
        rule("!self.contains('#')", "must not have a fragment"),
        rule("!self.contains('@')", "must not hold a user name"),
    ]
    fields = {
        "issuerURL": string("Issuer as tokens name it.", min_len=1, max_len=512, rules=https),
        "audiences": array(
            string(min_len=1, max_len=512), "Audiences that are accepted.", min_items=1, max_items=10, unique=True
        ),
        "issuerCertificateAuthority": named("ConfigMap with ca-bundle.crt of the issuer."),
        "discoveryURL": string(
            "Where the issuer's keys are looked up, if not below its own URL.", min_len=1, max_len=2048, rules=https
        ),
    }
    differs = rule(
        "!has(self.discoveryURL) || self.discoveryURL.find('^.+[^/]') != self.issuerURL.find('^.+[^/]')",
        "discoveryURL must differ from issuerURL",
    )
    return obj(fields, "Who issues the tokens.", required=("issuerURL", "audiences"), rules=[differs])


def _mappings() -> Schema:
    one_of = rule(
        "has(self.claim) ? !has(self.expression) : has(self.expression)",
        "exactly one of claim and expression is needed",
    )
    username = obj(
        {
            **_source(),
            "prefixPolicy": string("Whether names get a prefix.", enum=("", "NoPrefix", "Prefix")),
            "prefix": obj(
                {"prefixString": string("What stands before a name.", min_len=1, max_len=256)},
                "The prefix.",
                required=("prefixString",),
            ),
        },
        "Where a user's name comes from.",
        rules=[
            one_of,
            rule(
                "!has(self.expression) || !has(self.prefixPolicy) || self.prefixPolicy != 'Prefix'",
                "a prefix goes with claim, not with expression",
            ),
            rule(
                "has(self.prefixPolicy) && self.prefixPolicy == 'Prefix' ? has(self.prefix) : !has(self.prefix)",
                "prefix is required when prefixPolicy is Prefix, and forbidden otherwise",
            ),
        ],
    )
    groups = obj(
        {
            "claim": string("Claim that holds it.", max_len=256),
            "expression": string("CEL expression that yields it.", min_len=1, max_len=1024),
            "prefix": string("What stands before a group.", max_len=256),
        },
        "Where a user's groups come from.",
        rules=[
            rule("!has(self.expression) || !has(self.prefix) || self.prefix == ''", "a prefix goes with claim only"),
            rule(
                "!has(self.claim) || self.claim == '' || !has(self.expression)",
                "claim and expression exclude each other",
            ),
        ],
    )
    fields = {
        "username": username,
        "groups": groups,
        "uid": obj(_source(), "Where a user's id comes from.", rules=[one_of]),
        "extra": array(_extra(), "Further facts about a user.", max_items=32, keys=("key",)),
    }
    return obj(fields, "From a token to a user.", required=("username",))


def _source() -> dict[str, Schema]:
    return {
        "claim": string("Claim that holds it.", min_len=1, max_len=256),
        "expression": string("CEL expression that yields it.", min_len=1, max_len=1024),
    }


def _extra() -> Schema:
    domain = "self.split('/', 2)[0]"
    key_rules = [
        rule("self.contains('/')", "key must be a domain and a path, such as example.org/team"),
        rule(
            f'{domain}.matches("{DNS_SUBDOMAIN_PATTERN}") && {domain}.size() <= 253'.replace("\\", "\\\\"),
            "the part before / must be a DNS name",
        ),
        *(
            rule(f"{domain} != '{one}' && !{domain}.endsWith('.{one}')", f"keys below {one} are reserved")
            for one in _RESERVED
        ),
        rule(
            "self.contains('/') && self.split('/', 2)[1].size() > 0 && self.split('/', 2)[1].size() <= 256",
            "the part after / has 1 to 256 characters",
        ),
    ]
    fields = {
        "key": string("Name of the fact.", min_len=1, max_len=510, rules=key_rules),
        "valueExpression": string("CEL expression that yields it.", min_len=1, max_len=1024),
    }
    return obj(fields, required=("key", "valueExpression"))


def _claim_rule() -> Schema:
    fields = {
        "type": string("Which kind of rule.", enum=("RequiredClaim", "CEL")),
        "requiredClaim": obj(
            {
                "claim": string("A claim.", min_len=1, max_len=256),
                "requiredValue": string("Its value.", min_len=1, max_len=1024),
            },
            "A claim with a fixed value.",
            required=("claim", "requiredValue"),
        ),
        "cel": {**_user_rule(), "description": "An expression over the claims."},
    }
    rules = [
        rule(
            f"self.type == '{kind}' ? has(self.{field}) : !has(self.{field})",
            f"{field} is required when type is {kind}, and forbidden otherwise",
        )
        for kind, field in (("CEL", "cel"), ("RequiredClaim", "requiredClaim"))
    ]
    return obj(fields, required=("type",), rules=rules)


def _user_rule() -> Schema:
    fields = {
        "expression": string("CEL expression that must be true.", min_len=1, max_len=1024),
        "message": string("What is said when it is not.", min_len=1, max_len=256),
    }
    return obj(fields, required=("expression", "message"))


def _client() -> Schema:
    fields = {
        "componentName": string("Part of the platform.", min_len=1, max_len=256),
        "componentNamespace": string("Its namespace.", min_len=1, max_len=63),
        "clientID": string("The client's id.", min_len=1, max_len=512),
        "clientSecret": named("Secret with clientSecret."),
        "extraScopes": array(string(max_len=256), "Further scopes.", max_items=64, unique=True),
    }
    return obj(fields, required=("componentName", "componentNamespace", "clientID"))
