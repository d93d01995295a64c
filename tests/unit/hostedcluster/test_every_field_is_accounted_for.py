"""No field of a spec is dropped in silence: it acts, or a condition names it, or it belongs to another platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hcp.api import generate
from hcp.hostedcluster import ignored_fields

SPECS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for crd in generate.crds()
}
OTHER_PLATFORMS = ("aws", "azure", "ibmcloud", "agent", "powervs", "openstack", "gcp")
ELSEWHERE = {f"platform.{name}" for name in OTHER_PLATFORMS}
# Refused as a whole, in the condition SupportedHostedCluster.
REFUSED = {"secretEncryption.kms"}
ACTED_ON = {
    "HostedCluster": {
        *(
            "additionalTrustBundle",
            "channel",
            "clusterID",
            "controlPlaneRelease",
            "controllerAvailabilityPolicy",
            "infraID",
        ),
        *("imageContentSources", "infrastructureAvailabilityPolicy", "issuerURL", "kubeAPIServerDNSName", "labels"),
        *("networking", "nodeSelector", "pausedUntil", "pullSecret", "release", "serviceAccountSigningKey"),
        *("services", "sshKey", "tolerations", "updateService"),
        *("etcd.managementType", "etcd.managed.storage"),
        *("etcd.unmanaged.endpoint", "etcd.unmanaged.tls"),
        *("platform.type", "platform.kubevirt.generateID", "platform.kubevirt.credentials"),
        *("secretEncryption.type", "secretEncryption.aescbc"),
        "configuration.ingress.appsDomain",
        "configuration.network.serviceNodePortRange",
        *("configuration.authentication.type", "configuration.authentication.oidcProviders"),
        *(f"configuration.proxy.{name}" for name in ("httpProxy", "httpsProxy", "noProxy", "trustedCA")),
        *("autoscaling", "capabilities", "dns.baseDomainPrefix", "platform.kubevirt.baseDomainPassthrough"),
        *("auditWebhook", "configuration.apiServer.audit", "monitoring.metricsSet"),
        *(f"configuration.apiServer.{name}" for name in ("clientCA", "servingCerts", "tlsSecurityProfile")),
        *("configuration.image.additionalTrustedCA", "configuration.scheduler.profile"),
    },
    "NodePool": {
        *("arch", "clusterName", "config", "management", "nodeDrainTimeout", "nodeLabels", "nodeVolumeDetachTimeout"),
        *("pausedUntil", "platform.kubevirt", "platform.type", "release", "replicas", "taints"),
        *("autoScaling", "tuningConfig"),
    },
}
# Said by AllFieldsHonoured of a pool (hcp.nodepool.ignored_fields) and its other conditions.
NAMED_BY_POOL = {"osImageStream"}


def leaves(path: str, schema: dict[str, Any]) -> Iterator[str]:
    items = schema.get("items") or {}
    fields = schema.get("properties") or items.get("properties")
    if not fields:
        yield path
        return
    for name, value in fields.items():
        yield from leaves(f"{path}.{name}" if path else name, value)


def covered(leaf: str, by: set[str]) -> bool:
    return any(leaf == path or leaf.startswith(f"{path}.") for path in by)


def named(kind: str) -> set[str]:
    if kind == "NodePool":
        return NAMED_BY_POOL
    by_release = (*ignored_fields.STORAGE, *ignored_fields.CATALOGS, *ignored_fields.LOGIN)
    return {path for path, _ in (*ignored_fields.UNACTED, *ignored_fields.PARTLY, *by_release)}


@pytest.mark.parametrize("kind", ["HostedCluster", "NodePool"])
def test_every_leaf_acts_or_is_named(kind: str) -> None:
    known = ACTED_ON[kind] | named(kind) | ELSEWHERE | REFUSED
    assert [leaf for leaf in leaves("", SPECS[kind]) if not covered(leaf, known)] == []


@pytest.mark.parametrize("kind", ["HostedCluster", "NodePool"])
def test_nothing_is_said_about_fields_that_do_not_exist(kind: str) -> None:
    found = list(leaves("", SPECS[kind]))
    told = ACTED_ON[kind] | named(kind)
    assert [path for path in sorted(told) if not any(covered(leaf, {path}) for leaf in found)] == []


def test_no_field_both_acts_and_is_named_as_without_effect() -> None:
    without = {path for path, _ in ignored_fields.UNACTED}
    assert [path for path in sorted(ACTED_ON["HostedCluster"]) if covered(path, without)] == []
