"""The NodePool object. Pure: options in, manifest out."""

from __future__ import annotations

from hcp.api import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hcp.cli.create.options import WorkerOptions

    Object = dict[str, Any]


def node_pool(options: WorkerOptions) -> Object:
    metadata: Object = {"name": options.name, "namespace": options.namespace}
    if options.annotations:
        metadata["annotations"] = options.annotations
    spec: Object = {
        "arch": options.arch,
        "clusterName": options.cluster_name,
        "management": {"autoRepair": options.auto_repair, "upgradeType": options.upgrade_type},
        "platform": {"type": options.platform},
        "release": {"image": options.release_image},
        "replicas": options.replicas,
    }
    if options.platform == names.PLATFORM_KUBEVIRT:
        spec["platform"]["kubevirt"] = kubevirt(options)
    if options.drain_timeout:
        spec["nodeDrainTimeout"] = options.drain_timeout
        spec["nodeVolumeDetachTimeout"] = options.detach_timeout
    if options.paused_until:
        spec["pausedUntil"] = options.paused_until
    return {
        "apiVersion": names.API_VERSION,
        "kind": "NodePool",
        "metadata": metadata,
        "spec": spec,
        "status": {"replicas": 0},
    }


def kubevirt(options: WorkerOptions) -> Object:
    """`spec.platform.kubevirt`. Defaults of the API are left to it, except where HyperShift's tools write them."""
    compute: Object = {"cores": options.cores}
    if options.memory:
        compute["memory"] = options.memory
    if options.qos_class == "Guaranteed":
        compute["qosClass"] = options.qos_class
    persistent: Object = {"size": options.root_volume_size}
    if options.root_volume_storage_class:
        persistent["storageClass"] = options.root_volume_storage_class
    if options.root_volume_access_modes:
        persistent["accessModes"] = options.root_volume_access_modes
    if options.root_volume_volume_mode:
        persistent["volumeMode"] = options.root_volume_volume_mode
    volume: Object = {"type": "Persistent", "persistent": persistent}
    if options.root_volume_cache_strategy:
        volume["cacheStrategy"] = {"type": options.root_volume_cache_strategy}
    if options.container_disk:
        volume["diskImage"] = {"containerDiskImage": options.container_disk}
    spec: Object = {
        "attachDefaultNetwork": options.attach_default_network,
        "compute": compute,
        "rootVolume": volume,
    }
    if options.multiqueue:
        spec["networkInterfaceMultiqueue"] = options.multiqueue
    if options.additional_networks:
        spec["additionalNetworks"] = options.additional_networks
    if options.node_selector:
        spec["nodeSelector"] = options.node_selector
    if options.host_devices:
        spec["hostDevices"] = options.host_devices
    return spec
