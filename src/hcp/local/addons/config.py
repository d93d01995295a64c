"""What an OpenShift management cluster publishes about itself, so that the operator finds it by the same reads."""

from __future__ import annotations

from typing import Any

from hcp.api.manifests import Object, config_map
from hcp.api.names import CONFIG_NAMESPACE
from hcp.local.addons.objects import namespace
from hcp.local.network.addresses import REGISTRY_HOST, REGISTRY_PORT, Addresses

GROUP = "config.openshift.io"
TRUST = "registry-ca"
_STRING: dict[str, Any] = {"type": "string"}
_STRINGS: dict[str, Any] = {"type": "array", "items": _STRING}


def _fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


_NAME = _fields(name=_STRING)
_CLUSTER_NETWORK = {"type": "array", "items": _fields(cidr=_STRING, hostPrefix={"type": "integer", "format": "int32"})}
_KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "networks": (
        "Network",
        _fields(clusterNetwork=_CLUSTER_NETWORK, serviceNetwork=_STRINGS, networkType=_STRING),
        _fields(
            clusterNetwork=_CLUSTER_NETWORK,
            serviceNetwork=_STRINGS,
            networkType=_STRING,
            clusterNetworkMTU={"type": "integer"},
        ),
    ),
    "ingresses": ("Ingress", _fields(domain=_STRING, appsDomain=_STRING), _fields(defaultPlacement=_STRING)),
    "images": (
        "Image",
        _fields(
            additionalTrustedCA=_NAME,
            registrySources=_fields(
                insecureRegistries=_STRINGS, blockedRegistries=_STRINGS, allowedRegistries=_STRINGS
            ),
        ),
        _fields(internalRegistryHostname=_STRING),
    ),
}


def definitions() -> list[Object]:
    return [_definition(plural, *parts) for plural, parts in _KINDS.items()]


def _definition(plural: str, kind: str, spec: dict[str, Any], status: dict[str, Any]) -> Object:
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def objects(plan: Addresses, registry_ca: str) -> list[Object]:
    """The objects named `cluster`, and the registry's authority where additionalTrustedCA points to."""
    key = f"{REGISTRY_HOST}..{REGISTRY_PORT}"
    network = {
        "clusterNetwork": [{"cidr": stack.pods, "hostPrefix": stack.node_prefix} for stack in plan.stacks],
        "serviceNetwork": [stack.services for stack in plan.stacks],
        "networkType": "ptp",
    }
    return [
        namespace(CONFIG_NAMESPACE),
        config_map(TRUST, CONFIG_NAMESPACE, {key: registry_ca}),
        {**_cluster("Network", network), "status": network},
        _cluster("Ingress", {"domain": plan.apps_domain}),
        _cluster("Image", {"additionalTrustedCA": {"name": TRUST}}),
    ]


def _cluster(kind: str, spec: dict[str, Any]) -> Object:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "cluster"}, "spec": spec}
