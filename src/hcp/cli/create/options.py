"""What the user asked for, checked and put into the words of the API; the builders turn it into objects.

Plain classes: the usual helpers for such records cost more to import than a render may take.
"""

from __future__ import annotations

from hcp.api import defaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class WorkerOptions:
    """One node pool; what describes a VM is for platform KubeVirt only."""

    platform: str = "KubeVirt"
    name: str
    namespace: str
    cluster_name: str
    replicas: int
    release_image: str = ""
    arch: str = "amd64"
    upgrade_type: str = "Replace"
    auto_repair: bool = False
    memory: str = ""
    cores: int = defaults.CORES
    root_volume_size: str = defaults.ROOT_SIZE
    root_volume_storage_class: str = ""
    root_volume_access_modes: list[str]
    root_volume_volume_mode: str = ""
    root_volume_cache_strategy: str = ""
    multiqueue: str = ""
    qos_class: str = ""
    additional_networks: list[dict[str, str]]
    attach_default_network: bool = True
    node_selector: dict[str, str]
    host_devices: list[dict[str, Any]]
    container_disk: str = ""
    # Only pools made together with their cluster carry these.
    drain_timeout: str = ""
    detach_timeout: str = ""
    paused_until: str = ""
    annotations: dict[str, str]


class ClusterOptions:
    """One hosted cluster with its files read in."""

    platform: str = "KubeVirt"
    name: str
    namespace: str
    infra_id: str
    release_image: str = ""
    base_domain: str = ""
    annotations: dict[str, str]
    labels: dict[str, str]
    availability_policy: str = "HighlyAvailable"
    infra_availability_policy: str = ""
    etcd_storage_class: str = ""
    etcd_storage_size: str = defaults.ETCD_SIZE
    node_selector: dict[str, str]
    pods_labels: dict[str, str]
    tolerations: list[dict[str, Any]]
    fips: bool = False
    feature_set: str = ""
    capabilities_disabled: list[str]
    capabilities_enabled: list[str]
    olm_catalog_placement: str = "management"
    olm_disable_default_sources: bool = False
    kas_dns_name: str = ""
    network_type: str = "OVNKubernetes"
    cluster_cidrs: list[str]
    service_cidrs: list[str]
    machine_cidrs: list[str]
    disable_multi_network: bool = False
    ovn_mtu: int = 0
    allocate_node_cidrs: bool = False
    paused_until: str = ""
    publishing: str = "Ingress"
    api_server_by_route: bool = False
    api_server_address: str = ""
    storage_class_mappings: list[dict[str, str]]
    snapshot_class_mappings: list[dict[str, str]]
    infra_namespace: str = ""
    image_content_sources: list[dict[str, Any]]
    # Contents of files, None when the flag was not given.
    pull_secret: bytes = b""
    ssh_public_key: bytes | None = None
    ssh_private_key: bytes | None = None
    infra_kubeconfig: bytes | None = None
    trust_bundle: str | None = None
    etcd_key: bytes = b""
    workers: WorkerOptions | None = None
