"""What a hosted API server remembers of requests, and where it keeps that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.controlplane.meta import obj, secret
from hcp.controlplane.params import Manifest, Params
from hcp.errors import HcpError
from hcp.runtime import quantity

WEBHOOK = "kas-audit-webhook"
WEBHOOK_KEY = "webhook-kubeconfig"
CLAIM = "kube-apiserver-audit"
FILE_MB = 100
SMALLEST = 1024**3
_WRITES = ["create", "update", "patch", "delete", "deletecollection"]
_SECRETIVE = [
    {"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]},
    {"group": "authentication.k8s.io", "resources": ["tokenreviews"]},
]


def policy(p: Params) -> dict[str, Any]:
    """What is worth remembering: never secrets, nothing of the control plane's own chatter, the rest by profile."""
    audit = p.api_config.get("audit")
    audit = audit if isinstance(audit, Mapping) else {}
    profile = str(audit.get("profile") or "Default")
    custom = [rule for rule in audit.get("customRules") or [] if isinstance(rule, Mapping) and rule.get("group")]
    if profile == "None" and not custom:
        return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}
    rules: list[dict[str, Any]] = [
        {"level": "None", "resources": [{"group": "", "resources": ["events"]}]},
        {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*"]},
        {"level": "None", "users": ["system:apiserver", "system:kube-scheduler"], "verbs": ["get", "list", "watch"]},
    ]
    # The first rule that fits decides: whose group comes first wins, as the API promises.
    for rule in custom:
        rules += _rules(str(rule.get("profile") or "Default"), {"userGroups": [str(rule["group"])]})
    rules += _rules(profile, {})
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}


def _rules(profile: str, whom: dict[str, Any]) -> list[dict[str, Any]]:
    if profile == "None":
        return [{"level": "None", **whom}]
    rules: list[dict[str, Any]] = [{"level": "Metadata", "resources": _SECRETIVE, **whom}]
    if profile == "WriteRequestBodies":
        rules.append({"level": "RequestResponse", "verbs": _WRITES, **whom})
    elif profile == "AllRequestBodies":
        rules.append({"level": "RequestResponse", **whom})
    rules.append({"level": "Metadata", **whom})
    return rules


@dataclass(frozen=True, slots=True)
class Volume:
    """The claim that keeps the log."""

    size: str
    storage_class: str = ""


def volume(p: Params) -> Volume | None:
    """Only where somebody asked: annotation `SIZE[,STORAGECLASS]`; what cannot be read is told by `problem`."""
    try:
        return _asked(p.annotations)
    except HcpError:
        return None


def problem(annotations: Mapping[str, str]) -> str:
    try:
        _asked(annotations)
    except HcpError as exc:
        return str(exc)
    return ""


def _asked(annotations: Mapping[str, str]) -> Volume | None:
    text = annotations.get(names.ANNOTATION_AUDIT_LOG_VOLUME, "").strip()
    if not text:
        return None
    size, _, storage_class = (part.strip() for part in text.partition(","))
    amount = quantity.parse(size)
    if amount is None or amount < SMALLEST:
        raise HcpError(f"annotation {names.ANNOTATION_AUDIT_LOG_VOLUME}: {size!r} is not a size of 1Gi or more")
    if storage_class and names.subdomain_problem(storage_class):
        raise HcpError(f"annotation {names.ANNOTATION_AUDIT_LOG_VOLUME}: {storage_class!r} is no name of a class")
    return Volume(size, storage_class)


def claim(p: Params) -> Manifest | None:
    """It stays when the annotation goes: somebody wanted the log kept. It ends with the cluster."""
    wanted = volume(p)
    if wanted is None:
        return None
    spec: Manifest = {
        # One pod at a time writes to it, unless there are several replicas: then the class must be able to share.
        "accessModes": ["ReadWriteMany" if p.highly_available else "ReadWriteOnce"],
        "resources": {"requests": {"storage": wanted.size}},
    }
    if wanted.storage_class:
        spec["storageClassName"] = wanted.storage_class
    return obj(p, "v1", "PersistentVolumeClaim", CLAIM, {"spec": spec})


def log_arguments(p: Params) -> dict[str, str]:
    """Two small files beside the process, or as many as fill most of the volume."""
    wanted = volume(p)
    if wanted is None:
        return {"audit-log-maxbackup": "1", "audit-log-maxsize": "10"}
    room = int(quantity.parse(wanted.size) or 0) * 8 // 10 // p.replicas
    return {"audit-log-maxbackup": str(max(1, room // (FILE_MB * 10**6) - 1)), "audit-log-maxsize": str(FILE_MB)}


def webhook_secret(p: Params, kubeconfig: bytes) -> Manifest:
    return secret(p, WEBHOOK, {WEBHOOK_KEY: kubeconfig})
