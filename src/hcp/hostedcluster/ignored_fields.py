"""What a HostedCluster asks for that is kept without effect: a condition names it, nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api import names
from hcp.api import spec as hosted
from hcp.api.paths import at

# Spec fields that are accepted but do nothing yet, with the value that means "not asked for".
UNACTED: tuple[tuple[str, Any], ...] = (
    ("configuration.apiServer.additionalCORSAllowedOrigins", None),
    ("configuration.apiServer.encryption", None),
    ("configuration.authentication.oauthMetadata", None),
    ("configuration.authentication.serviceAccountIssuer", ""),
    ("configuration.authentication.webhookTokenAuthenticator", None),
    ("configuration.authentication.webhookTokenAuthenticators", None),
    ("configuration.featureGate", None),
    ("configuration.image.allowedRegistriesForImport", None),
    ("configuration.image.externalRegistryHostnames", None),
    ("configuration.image.registrySources", None),
    ("configuration.ingress.componentRoutes", None),
    ("configuration.ingress.domain", ""),
    ("configuration.ingress.loadBalancer", None),
    ("configuration.ingress.requiredHSTSPolicies", None),
    ("configuration.network.clusterNetwork", None),
    ("configuration.network.externalIP", None),
    ("configuration.network.networkDiagnostics", None),
    ("configuration.network.networkType", ""),
    ("configuration.network.serviceNetwork", None),
    ("configuration.oauth.templates", None),
    ("configuration.proxy.readinessEndpoints", None),
    ("configuration.scheduler.defaultNodeSelector", ""),
    ("configuration.scheduler.mastersSchedulable", False),
    ("configuration.scheduler.policy.name", ""),
    ("configuration.scheduler.profileCustomizations", None),
    ("dns.privateZoneID", ""),
    ("dns.publicZoneID", ""),
    ("fips", False),
    ("monitoring.metricsForwarding.metricsSet", None),
    ("monitoring.metricsForwarding.mode", "None"),
    ("operatorConfiguration", None),
)


# Fields that act in part. The command line sets them by default, so what is missing is told, but as nothing wrong.
PARTLY: tuple[tuple[str, str], ...] = (
    ("dns.baseDomain", "names the guest's domain; records below it are made by whoever owns the domain"),
)
_PASSTHROUGH = "platform.kubevirt.baseDomainPassthrough"
_APPS_DOMAIN = "configuration.ingress.appsDomain"


# What somebody asked for of storage, where the release has none; the value that means "not asked for".
STORAGE: tuple[tuple[str, Any], ...] = (
    ("platform.kubevirt.storageDriver.manual", None),
    ("platform.kubevirt.storageDriver.type", "None"),
)


def storage_not_in_release(spec: Mapping[str, Any]) -> list[str]:
    """Fields that need parts which this release does not have."""
    return _asked(spec, STORAGE)


# The same of node pools that follow the load.
AUTOSCALING: tuple[tuple[str, Any], ...] = (
    ("autoscaling.balancingIgnoredLabels", None),
    ("autoscaling.expanders", None),
    ("autoscaling.maxFreeDifferenceRatioPercent", None),
    ("autoscaling.maxNodeProvisionTime", None),
    ("autoscaling.maxNodesTotal", None),
    ("autoscaling.maxPodGracePeriod", None),
    ("autoscaling.podPriorityThreshold", None),
    ("autoscaling.scaleDown", None),
    ("autoscaling.scaling", "ScaleUpAndScaleDown"),
)


def autoscaling_not_in_release(spec: Mapping[str, Any]) -> list[str]:
    """What is asked for of an autoscaler, where the release has none."""
    return _asked(spec, AUTOSCALING)


# The same of logging in.
LOGIN: tuple[tuple[str, Any], ...] = (
    ("configuration.oauth.identityProviders", None),
    ("configuration.oauth.tokenConfig", None),
)


def login_not_in_release(spec: Mapping[str, Any]) -> list[str]:
    """What is asked for of an OAuth server, where the release has none."""
    return _asked(spec, LOGIN)


# The same of catalogs of operators.
CATALOGS: tuple[tuple[str, Any], ...] = (("configuration.operatorhub", None), ("olmCatalogPlacement", "management"))
CATALOG_ANNOTATIONS = (
    names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES,
    names.ANNOTATION_CERTIFIED_CATALOG_IMAGE,
    names.ANNOTATION_COMMUNITY_CATALOG_IMAGE,
    names.ANNOTATION_MARKETPLACE_CATALOG_IMAGE,
    names.ANNOTATION_REDHAT_CATALOG_IMAGE,
)


def catalogs_not_in_release(spec: Mapping[str, Any], annotations: Mapping[str, str]) -> list[str]:
    """What is asked for of catalogs, where the release has no part that reads them."""
    return _asked(spec, CATALOGS) + [f"annotation {key}" for key in sorted(annotations) if key in CATALOG_ANNOTATIONS]


def ingress_not_in_release(spec: Mapping[str, Any]) -> list[str]:
    """What is less than it says where the release has no ingress."""
    words = ((_PASSTHROUGH, "chooses the base domain only"), (_APPS_DOMAIN, "is only told inside"))
    return [f"{path} {what}: the release has no ingress" for path, what in words if at(spec, path)]


# Parts that a release may have, by their capability; others that are asked for are in none.
CAPABILITIES = {"Ingress": ("router",), "Monitoring": ("kube-state-metrics", "prometheus", "prometheus-node-exporter")}


def capabilities_not_in_release(spec: Mapping[str, Any], images: Iterable[str]) -> list[str]:
    """Parts that are asked for in vain."""
    there = set(images)
    return [
        f"capabilities.enabled: {name}"
        for name in at(spec, "capabilities.enabled") or ()
        if name not in CAPABILITIES or not there.issuperset(CAPABILITIES[name])
    ]


def acted_on_in_part(spec: Mapping[str, Any]) -> list[str]:
    """Fields the user or the command line set that do less than their name says, each with what they do."""
    return [f"{path} {what}" for path, what in PARTLY if at(spec, path)]


# Annotations of the established API that do nothing here.
ANNOTATIONS = (
    names.ANNOTATION_CAPI_KUBEVIRT_IMAGE,
    names.ANNOTATION_CAPI_MANAGER_IMAGE,
    names.ANNOTATION_CONTROL_PLANE_OPERATOR_IMAGE,
    names.ANNOTATION_DISABLE_IGNITION_SERVER,
    names.ANNOTATION_DISABLE_MACHINE_MANAGEMENT,
    names.ANNOTATION_DISABLE_PKI,
    names.ANNOTATION_TOPOLOGY,
    names.ANNOTATION_UNSUPPORTED_RHCOS,
)
ANNOTATION_PREFIXES = (names.ANNOTATION_IDP_OVERRIDE_PREFIX,)


def ignored_annotations(annotations: Mapping[str, str]) -> list[str]:
    """Annotations the user set that change nothing."""
    return [
        f"annotation {key}" for key in sorted(annotations) if key in ANNOTATIONS or key.startswith(ANNOTATION_PREFIXES)
    ]


def not_acted_on(spec: Mapping[str, Any]) -> list[str]:
    """Fields the user set and this operator only stores."""
    labels = [f"labels[{key}]" for key in spec.get("labels") or {} if names.steers(key)]
    return [*_asked(spec, UNACTED), *labels, *_open_to_all(spec)]


def _open_to_all(spec: Mapping[str, Any]) -> list[str]:
    """Who is let in is decided by a load balancer; neither routers nor node ports are told."""
    kind = hosted.publishing(spec, "APIServer")
    if kind == "LoadBalancer" or not at(spec, "networking.apiServer.allowedCIDRBlocks"):
        return []
    return [f"networking.apiServer.allowedCIDRBlocks (the API is published by {kind}, which everybody reaches)"]


def _asked(spec: Mapping[str, Any], fields: tuple[tuple[str, Any], ...]) -> list[str]:
    found = []
    for path, neutral in fields:
        value = at(spec, path)
        if value not in (None, neutral, {}, [], "") and not (isinstance(value, Mapping) and not any(value.values())):
            found.append(path)
    return found
