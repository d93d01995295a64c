"""What a hosted API server remembers, where it keeps it and where it sends it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.unit.controlplane import params

from hcp.api import names
from hcp.controlplane import apiserver, audit

VOLUME = names.ANNOTATION_AUDIT_LOG_VOLUME
SECRETS = {"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]}


def level(policy: dict[str, Any], *, verb: str, resource: str, groups: tuple[str, ...] = ()) -> str:
    """As the API server does it: the first rule that fits decides."""
    for rule in policy["rules"]:
        if "nonResourceURLs" in rule or "users" in rule:
            continue
        if rule.get("verbs") and verb not in rule["verbs"]:
            continue
        if rule.get("userGroups") and not set(groups) & set(rule["userGroups"]):
            continue
        if rule.get("resources") and not any(resource in one["resources"] for one in rule["resources"]):
            continue
        return str(rule["level"])
    return "None"


@pytest.mark.parametrize(
    ("profile", "read", "write"),
    [
        ("Default", "Metadata", "Metadata"),
        ("", "Metadata", "Metadata"),
        ("WriteRequestBodies", "Metadata", "RequestResponse"),
        ("AllRequestBodies", "RequestResponse", "RequestResponse"),
        ("None", "None", "None"),
    ],
)
def test_profiles(profile: str, read: str, write: str) -> None:
    policy = audit.policy(params(api_config={"audit": {"profile": profile}}))
    assert level(policy, verb="get", resource="pods") == read
    assert level(policy, verb="create", resource="pods") == write
    # Whatever is asked: what is secret is never written down.
    assert level(policy, verb="update", resource="secrets") in ("Metadata", "None")


def test_groups_have_profiles_of_their_own_and_the_first_wins() -> None:
    custom = [
        {"group": "robots", "profile": "None"},
        {"group": "admins", "profile": "AllRequestBodies"},
        {"group": "robots", "profile": "AllRequestBodies"},
    ]
    policy = audit.policy(params(api_config={"audit": {"profile": "Default", "customRules": custom}}))
    assert level(policy, verb="get", resource="pods", groups=("robots",)) == "None"
    assert level(policy, verb="get", resource="pods", groups=("admins",)) == "RequestResponse"
    assert level(policy, verb="get", resource="secrets", groups=("admins",)) == "Metadata"
    assert level(policy, verb="get", resource="pods", groups=("others",)) == "Metadata"
    only = audit.policy(params(api_config={"audit": {"profile": "None", "customRules": custom[1:2]}}))
    assert level(only, verb="create", resource="pods", groups=("admins",)) == "RequestResponse"
    assert level(only, verb="create", resource="pods") == "None"


def test_without_being_asked_nothing_is_kept_beyond_the_pod_and_nothing_is_sent() -> None:
    p = params()
    assert audit.claim(p) is None
    pod = apiserver.deployment(p, "h")["spec"]["template"]["spec"]
    assert {"name": "audit-logs", "emptyDir": {"sizeLimit": "200Mi"}} in pod["volumes"]
    assert not any("webhook-config" in flag for flag in apiserver.arguments(p))


def test_a_volume_is_filled_and_never_overfilled() -> None:
    p = params(annotations={VOLUME: "5Gi,fast"})
    claim = audit.claim(p)
    assert claim is not None
    assert claim["spec"]["storageClassName"] == "fast"
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in apiserver.arguments(p))
    files = int(flags["audit-log-maxbackup"]) + 1
    assert 0.5 * 5 * 1024**3 < files * int(flags["audit-log-maxsize"]) * 10**6 < 5 * 1024**3
    deployment = apiserver.deployment(p, "h")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    several = apiserver.deployment(params(annotations={VOLUME: "5Gi"}, highly_available=True), "h")
    mounts = several["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    assert [m["subPathExpr"] for m in mounts if m["name"] == "audit-logs"] == ["$(POD_NAME)"]


@pytest.mark.parametrize("text", ["lots", "1Mi", "5Gi,No_Class", ",fast"])
def test_a_volume_that_cannot_be_meant_is_told(text: str) -> None:
    assert VOLUME in audit.problem({VOLUME: text})
    assert audit.volume(params(annotations={VOLUME: text})) is None


def test_a_webhook_is_mounted_and_rolls_with_its_secret() -> None:
    p = params(audit_webhook=True)
    assert ("Secret", audit.WEBHOOK) in apiserver.mounted(p)
    assert "--audit-webhook-config-file=/etc/kubernetes/audit-webhook/webhook-kubeconfig" in apiserver.arguments(p)
    assert ("Secret", audit.WEBHOOK) not in apiserver.mounted(params())
