"""Objects of a hosted cluster, in the order they are rendered and applied. Pure: options in, manifests out."""

from __future__ import annotations

from binascii import b2a_base64

from hcp.api import names
from hcp.cli.create.nodepool.objects import node_pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hcp.cli.create.options import ClusterOptions

    Object = dict[str, Any]

ROUTED = ("Ignition", "Konnectivity", "OAuthServer")
ON_NODE_PORTS = ("APIServer", "Ignition", "Konnectivity", "OAuthServer", "OIDC")


def objects(options: ClusterOptions) -> list[Object]:
    """Namespace, trust bundle, Secrets, HostedCluster, NodePool: what is referred to comes before what refers to it."""
    found: list[Object] = [namespace(options.namespace)]
    if options.trust_bundle is not None:
        found.append(trust_bundle(options.namespace, options.trust_bundle))
    found += secrets(options)
    found.append(hosted_cluster(options))
    if options.workers is not None:
        found.append(node_pool(options.workers))
    return found


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}, "status": {}}


def trust_bundle(namespace: str, text: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.USER_CA_BUNDLE, "namespace": namespace},
        "data": {names.CA_BUNDLE_KEY: text},
    }


def secrets(options: ClusterOptions) -> list[Object]:
    """Pull secret, SSH key, infra kubeconfig and the key etcd's contents are encrypted with."""
    found = [_secret(options, "pull-secret", {names.PULL_SECRET_KEY: options.pull_secret})]
    if options.ssh_public_key is not None:
        keys = {names.SSH_KEY_KEY: options.ssh_public_key}
        if options.ssh_private_key is not None:
            keys["id_rsa"] = options.ssh_private_key
        found.append(_secret(options, "ssh-key", keys))
    if options.infra_kubeconfig is not None:
        data = {names.KUBECONFIG_KEY: options.infra_kubeconfig}
        found.append(_secret(options, "infra-credentials", data, opaque=True))
    found.append(_secret(options, "etcd-encryption-key", {names.ETCD_KEY_KEY: options.etcd_key}, opaque=True))
    return found


def _secret(options: ClusterOptions, suffix: str, data: dict[str, bytes], *, opaque: bool = False) -> Object:
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{options.name}-{suffix}",
            "namespace": options.namespace,
            "labels": {names.LABEL_SAFE_TO_DELETE: "true"},
        },
        "data": {key: b2a_base64(value, newline=False).decode() for key, value in data.items()},
    }
    if opaque:
        secret["type"] = "Opaque"
    return secret


def hosted_cluster(options: ClusterOptions) -> Object:
    metadata: Object = {"name": options.name, "namespace": options.namespace}
    if options.annotations:
        metadata["annotations"] = options.annotations
    if options.labels:
        metadata["labels"] = options.labels
    volume: Object = {"size": options.etcd_storage_size}
    if options.etcd_storage_class:
        volume["storageClassName"] = options.etcd_storage_class
    key = {"name": f"{options.name}-etcd-encryption-key"}
    spec: Object = {
        "autoscaling": {},
        "capabilities": _present(disabled=options.capabilities_disabled, enabled=options.capabilities_enabled),
        "configuration": _configuration(options),
        "controllerAvailabilityPolicy": options.availability_policy,
        "dns": {"baseDomain": options.base_domain},
        "etcd": {
            "managementType": "Managed",
            "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": volume}},
        },
        "fips": options.fips,
        "infraID": options.infra_id,
        "networking": _networking(options),
        "olmCatalogPlacement": options.olm_catalog_placement,
        "platform": {"type": options.platform},
        "pullSecret": {"name": f"{options.name}-pull-secret"},
        "release": {"image": options.release_image},
        "secretEncryption": {"type": "aescbc", "aescbc": {"activeKey": key}},
        "services": _services(options),
        "sshKey": {} if options.ssh_public_key is None else {"name": f"{options.name}-ssh-key"},
    }
    if options.platform == names.PLATFORM_KUBEVIRT:
        spec["platform"]["kubevirt"] = _platform(options)
    spec |= _present(
        additionalTrustBundle={} if options.trust_bundle is None else {"name": names.USER_CA_BUNDLE},
        imageContentSources=options.image_content_sources,
        infrastructureAvailabilityPolicy=options.infra_availability_policy,
        kubeAPIServerDNSName=options.kas_dns_name,
        labels=options.pods_labels,
        nodeSelector=options.node_selector,
        operatorConfiguration=_operator_configuration(options),
        pausedUntil=options.paused_until,
        tolerations=options.tolerations,
    )
    return {
        "apiVersion": names.API_VERSION,
        "kind": "HostedCluster",
        "metadata": metadata,
        "spec": spec,
        "status": {"controlPlaneEndpoint": {"host": "", "port": 0}},
    }


def _present(**fields: Any) -> Object:
    """The fields that hold something; empty ones are left out of an object."""
    return {name: value for name, value in fields.items() if value}


def _configuration(options: ClusterOptions) -> Object:
    return _present(
        operatorhub={"disableAllDefaultSources": True} if options.olm_disable_default_sources else {},
        featureGate={"featureSet": options.feature_set} if options.feature_set else {},
    )


def _networking(options: ClusterOptions) -> Object:
    return {
        "networkType": options.network_type,
        "clusterNetwork": [{"cidr": cidr} for cidr in options.cluster_cidrs],
        "serviceNetwork": [{"cidr": cidr} for cidr in options.service_cidrs],
        **_present(
            machineNetwork=[{"cidr": cidr} for cidr in options.machine_cidrs],
            allocateNodeCIDRs="Enabled" if options.allocate_node_cidrs else "",
        ),
    }


def _platform(options: ClusterOptions) -> Object:
    credentials: Object = {}
    if options.infra_kubeconfig is not None:
        secret = {"name": f"{options.name}-infra-credentials", "key": names.KUBECONFIG_KEY}
        credentials = {"infraKubeConfigSecret": secret, "infraNamespace": options.infra_namespace}
    manual = _present(
        storageClassMapping=options.storage_class_mappings,
        volumeSnapshotClassMapping=options.snapshot_class_mappings,
    )
    return _present(
        baseDomainPassthrough=not options.base_domain,
        credentials=credentials,
        storageDriver={"type": "Manual", "manual": manual} if manual else {},
    )


def _operator_configuration(options: ClusterOptions) -> Object:
    network = _present(
        disableMultiNetwork=options.disable_multi_network,
        ovnKubernetesConfig={"mtu": options.ovn_mtu} if options.ovn_mtu else {},
    )
    return {"clusterNetworkOperator": network} if network else {}


def _services(options: ClusterOptions) -> list[Object]:
    if options.publishing == "NodePort":
        port = {"address": options.api_server_address}
        return [_service(name, "NodePort", nodePort=port) for name in ON_NODE_PORTS]
    api = "Route" if options.api_server_by_route else "LoadBalancer"
    return [_service("APIServer", api), *(_service(name, "Route") for name in ROUTED)]


def _service(name: str, kind: str, **details: Any) -> Object:
    return {"service": name, "servicePublishingStrategy": {"type": kind, **details}}
