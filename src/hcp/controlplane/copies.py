"""What is copied from the HostedCluster's namespace into the hosted one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.controlplane.meta import config_map, obj, secret
from hcp.controlplane.params import Manifest, Params
from hcp.pki import public_key

SIGNING_KEY = "sa-signing-key"


def copied_secret(p: Params, source: Mapping[str, Any], name: str, type_: str | None = None) -> Manifest:
    """The same data under our name; keys that left the source leave the copy."""
    body = {"type": type_ or source.get("type") or "Opaque", "data": dict(sorted((source.get("data") or {}).items()))}
    return obj(p, "v1", "Secret", name, body)


def pull_secret(p: Params, source: Mapping[str, Any]) -> Manifest:
    return copied_secret(p, source, "pull-secret", "kubernetes.io/dockerconfigjson")


def infra_credentials(p: Params, kubeconfig: bytes, namespace: str) -> Manifest:
    """What Cluster API's provider reads: the kubeconfig, and where machines go."""
    return secret(p, names.INFRA_CREDENTIALS, {names.KUBECONFIG_KEY: kubeconfig, "namespace": namespace.encode()})


def user_ca_bundle(p: Params, bundle: str) -> Manifest:
    return config_map(p, names.USER_CA_BUNDLE, {names.CA_BUNDLE_KEY: bundle})


def signing_key(p: Params, private: bytes, old_public: bytes = b"") -> Manifest:
    """For service account tokens; an old public key keeps tokens of the time before valid."""
    public = public_key(private) + old_public
    return secret(p, SIGNING_KEY, {"service-account.key": private, "service-account.pub": public})
