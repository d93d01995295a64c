"""What keeps the secrets of an embedded cluster secret, and who touched them: encryption at rest and an audit log."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

from hcp.local.state.layout import Layout
from hcp.local.state.spec import write_file

KEY_BYTES = 32
LOG_MB, LOG_FILES = 16, 2
_READ = ["get", "list", "watch"]


def flags(layout: Layout) -> list[str]:
    """What kube-apiserver is told. Events are written in batches: no request waits for the disk."""
    return [
        f"--encryption-provider-config={layout.etc / 'encryption.json'}",
        f"--audit-policy-file={layout.etc / 'audit-policy.json'}",
        f"--audit-log-path={layout.logs / 'audit.log'}",
        "--audit-log-mode=batch",
        "--audit-log-batch-max-wait=5s",
        f"--audit-log-maxsize={LOG_MB}",
        f"--audit-log-maxbackup={LOG_FILES}",
    ]


def ensure(layout: Layout) -> None:
    """The key is made once: without it nothing that it encrypted can be read again."""
    key = layout.etc / "encryption.json"
    if not key.exists():
        write_file(key, _text(encryption(secrets.token_bytes(KEY_BYTES))))
    write_file(layout.etc / "audit-policy.json", _text(audit_policy()), mode=0o644)


def encryption(key: bytes) -> dict[str, Any]:
    """Secrets are written encrypted; those of a cluster that is older than this are still read."""
    keys = [{"name": "first", "secret": base64.b64encode(key).decode()}]
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [{"secretbox": {"keys": keys}}, {"identity": {}}]}],
    }


def audit_policy() -> dict[str, Any]:
    """Who read or changed a Secret, took a token, entered a pod, changed rights or hosted clusters; never contents."""

    def of(group: str, *resources: str) -> dict[str, Any]:
        return {"group": group, "resources": list(resources)} if resources else {"group": group}

    sensitive = [of("", "secrets", "serviceaccounts/token", "pods/exec", "pods/attach", "pods/portforward")]
    steering = [
        of("rbac.authorization.k8s.io"),
        of("admissionregistration.k8s.io"),
        of("hypershift.openshift.io"),
        of("certificates.k8s.io"),
    ]
    rules: list[dict[str, Any]] = [
        # The kubelet needs the secrets and tokens of its pods all the time.
        {"level": "None", "userGroups": ["system:nodes"]},
        {"level": "None", "users": ["system:kube-controller-manager", "system:apiserver"], "verbs": _READ},
        {"level": "Metadata", "resources": sensitive},
        {"level": "None", "verbs": _READ},
        {"level": "None", "resources": [of("hypershift.openshift.io", "*/status")]},
        {"level": "Metadata", "resources": steering},
        {"level": "None"},
    ]
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"
