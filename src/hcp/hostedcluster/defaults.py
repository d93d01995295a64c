"""Values the operator fills in when the user gave none; written back once, so that they never change again."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import at


def encryption_key_name(cluster: str) -> str:
    return f"{cluster}-etcd-encryption-key"


def missing(cluster: Mapping[str, Any], apps_domain: str = "") -> dict[str, Any]:
    """The spec fields to fill in; empty when nothing is missing. `apps_domain`: of where the machines run, if known."""
    spec, name = cluster["spec"], cluster["metadata"]["name"]
    patch: dict[str, Any] = {}
    if not spec.get("clusterID"):
        patch["clusterID"] = str(uuid.uuid4())
    if not spec.get("infraID"):
        patch["infraID"] = names.new_infra_id(name)
    platform = spec.get("platform") or {}
    if platform.get("type") == "KubeVirt" and not at(platform, "kubevirt.generateID"):
        patch["platform"] = {"kubevirt": {"generateID": names.random_suffix(10)}}
    passed_through = at(platform, "kubevirt.baseDomainPassthrough")
    if passed_through and apps_domain and not at(spec, "dns.baseDomain"):
        # Guest routes live below the apps domain of the cluster the machines run on.
        patch["dns"] = {"baseDomain": apps_domain}
    encryption = spec.get("secretEncryption") or {}
    if not encryption or (encryption.get("type") == "aescbc" and not at(encryption, "aescbc.activeKey.name")):
        patch["secretEncryption"] = {"type": "aescbc", "aescbc": {"activeKey": {"name": encryption_key_name(name)}}}
    return patch


def patch_for(cluster: Mapping[str, Any], apps_domain: str = "") -> dict[str, Any] | None:
    """One merge patch that adds the finalizer and the defaults, None when there is nothing to do.

    The finalizer list is guarded by the resource version: a merge patch replaces it whole.
    """
    spec = missing(cluster, apps_domain)
    meta = cluster["metadata"]
    finalizers = list(meta.get("finalizers") or [])
    body: dict[str, Any] = {}
    if spec:
        body["spec"] = spec
    if names.FINALIZER not in finalizers:
        body["metadata"] = {"finalizers": [*finalizers, names.FINALIZER], "resourceVersion": meta["resourceVersion"]}
    return body or None
