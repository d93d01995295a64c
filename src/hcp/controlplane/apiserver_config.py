"""The files kube-apiserver reads: audit policy, egress selector, encryption at rest, admission."""

from __future__ import annotations

import base64
import json
from typing import Any

from hcp.controlplane import audit
from hcp.controlplane.meta import config_map, secret
from hcp.controlplane.params import Manifest, Params

CONFIG = "kas-config"
ENCRYPTION = "kas-secret-encryption-config"
UDS_DIR = "/run/konnectivity"
UDS_NAME = f"{UDS_DIR}/server.socket"
_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def _text(value: Any) -> str:
    """JSON is YAML and renders the same in every process."""
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def egress_selector() -> dict[str, Any]:
    """Calls to nodes, pods and services of the guest go through the konnectivity server beside us."""
    proxy = {"proxyProtocol": "GRPC", "transport": {"uds": {"udsName": UDS_NAME}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {"name": "controlplane", "connection": {"proxyProtocol": "Direct"}},
            {"name": "etcd", "connection": {"proxyProtocol": "Direct"}},
            {"name": "cluster", "connection": proxy},
        ],
    }


def admission() -> dict[str, Any]:
    """Pod security is told, not enforced, until a namespace asks for it."""
    defaults = {
        "enforce": "privileged",
        "enforce-version": "latest",
        "audit": "restricted",
        "audit-version": "latest",
        "warn": "restricted",
        "warn-version": "latest",
    }
    pod_security = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": defaults,
        "exemptions": {"usernames": [], "runtimeClasses": [], "namespaces": ["kube-system"]},
    }
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "PodSecurity", "configuration": pod_security}],
    }


def key_name(key: bytes) -> str:
    """Names a key by its content, so that a new key can never be taken for the old one."""
    value = _FNV_OFFSET
    for byte in key:
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return f"key-{value:08x}"


def encryption(keys: list[bytes]) -> dict[str, Any]:
    """Secrets at rest; the first key writes, all of them read, and what was never encrypted is read too."""
    entries = [{"name": key_name(k), "secret": base64.b64encode(k).decode()} for k in keys]
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [
            {"resources": ["secrets", "configmaps"], "providers": [{"aescbc": {"keys": entries}}, {"identity": {}}]}
        ],
    }


def config(p: Params) -> Manifest:
    return config_map(
        p,
        CONFIG,
        {
            "audit-policy.yaml": _text(audit.policy(p)),
            "egress-selector.yaml": _text(egress_selector()),
            "admission.yaml": _text(admission()),
        },
    )


def encryption_secret(p: Params, keys: list[bytes]) -> Manifest:
    return secret(p, ENCRYPTION, {"config.yaml": _text(encryption(keys)).encode()})
