"""Whose tokens kube-apiserver believes."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.support.unit.controlplane import IMAGES, params

from hcp.controlplane import apiserver, authentication
from hcp.controlplane.params import LOGIN_IMAGE
from hcp.pki import new_ca

CA = new_ca("somebody").cert_pem.decode()
PROVIDER: dict[str, Any] = {
    "name": "own",
    "issuer": {"issuerURL": "https://id.example", "audiences": ["a", "b"]},
    "claimMappings": {"username": {"claim": "email"}},
}


def spec(**changes: Any) -> dict[str, Any]:
    return {"configuration": {"authentication": {"type": "OIDC", "oidcProviders": [{**PROVIDER, **changes}]}}}


def test_only_who_uses_it_has_the_flag() -> None:
    flag = "--authentication-config=/etc/kubernetes/authentication/auth-config.json"
    without, with_login = params(), params(images={**IMAGES, LOGIN_IMAGE: "registry.example/dex@sha256:0"})
    assert flag not in apiserver.arguments(without)
    assert flag in apiserver.arguments(with_login)
    assert flag in apiserver.arguments(params(own_issuer=True))
    assert ("ConfigMap", authentication.CONFIG) not in apiserver.mounted(with_login), "it is read again, nothing rolls"


def test_without_an_issuer_the_file_is_good_too() -> None:
    made = authentication.config(params(), [])
    assert json.loads(made["data"][authentication.FILE])["jwt"] == []


def test_a_subject_is_written_as_dex_writes_it() -> None:
    # Of its documentation: user 0-385-28089-0 of connector mock.
    assert authentication.subject("0-385-28089-0", "mock") == "Cg0wLTM4NS0yODA4OS0wEgRtb2Nr"
    assert base64.urlsafe_b64decode(authentication.subject("kubeadmin", "password") + "==").startswith(b"\n\tkubeadmin")


def test_an_issuer_of_the_owners_gets_its_claims() -> None:
    mappings = {"username": {"claim": "sub"}, "groups": {"claim": "roles", "prefix": "x:"}, "uid": {"claim": "id"}}
    rules = [{"type": "RequiredClaim", "requiredClaim": {"claim": "tenant", "requiredValue": "one"}}]
    made = authentication.direct({**PROVIDER, "claimMappings": mappings, "claimValidationRules": rules}, CA)
    assert made["issuer"] == {
        "url": "https://id.example",
        "audiences": ["a", "b"],
        "audienceMatchPolicy": "MatchAny",
        "certificateAuthority": CA,
    }
    assert made["claimMappings"]["username"] == {"claim": "sub", "prefix": "https://id.example#"}
    assert made["claimMappings"]["groups"] == {"claim": "roles", "prefix": "x:"}
    assert made["claimMappings"]["uid"] == {"claim": "id"}
    assert made["claimValidationRules"] == [{"claim": "tenant", "requiredValue": "one"}]


def test_prefixes_are_as_asked_for() -> None:
    def username(**given: Any) -> Any:
        return authentication.direct({**PROVIDER, "claimMappings": {"username": given}}, "")["claimMappings"][
            "username"
        ]

    assert username(claim="email") == {"claim": "email", "prefix": ""}
    assert username(claim="sub", prefixPolicy="NoPrefix") == {"claim": "sub", "prefix": ""}
    prefix = {"prefixString": "oidc:"}
    assert username(claim="sub", prefixPolicy="Prefix", prefix=prefix) == {"claim": "sub", "prefix": "oidc:"}


def test_what_the_api_server_would_not_start_with_is_refused() -> None:
    def found(ca: str | None = CA, issuer: str = "https://kubernetes.default.svc", **changes: Any) -> str:
        return "; ".join(authentication.problems(spec(**changes), issuer, ca))

    assert found() == ""
    assert "service accounts" in found(issuer="https://id.example")
    assert "holds no certificates" in found(ca="nonsense")
    assert "does not exist" in found(ca=None)
    assert "use claims" in found(claimMappings={"username": {"expression": "claims.sub"}})
    assert "use claims" in found(userValidationRules=[{"expression": "true", "message": "x"}])
    empty = {"configuration": {"authentication": {"type": "OIDC"}}}
    assert authentication.problems(empty, "", "") != []
