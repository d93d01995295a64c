"""The KubeVirt blocks of HostedCluster and NodePool."""

from __future__ import annotations

from hcp.api import defaults
from hcp.api.parts import key_ref, labels
from hcp.api.schema import (
    MAX_NAME,
    Schema,
    array,
    boolean,
    immutable,
    integer,
    kept,
    obj,
    quantity,
    rule,
    settled,
    string,
)

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnly", "ReadWriteOncePod")
# What one virtual machine can have at all: QEMU ends at 1024 processors, a PCI bus tree far below this many devices.
MAX_CORES = 1024
MAX_DEVICE_COUNT = 64
NETWORK_PATTERN = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


def credentials(*, rules: bool = True) -> Schema:
    fields = {
        "infraNamespace": string(
            "Namespace of the infra cluster that holds the virtual machines.",
            min_len=1,
            max_len=63,
            rules=[immutable("infraNamespace")],
        ),
        "infraKubeConfigSecret": key_ref(
            "Secret with a kubeconfig of the infra cluster.", rules=[immutable("infraKubeConfigSecret")]
        ),
    }
    return obj(
        fields,
        "An infra cluster other than the management cluster.",
        required=("infraNamespace",),
        rules=[settled("infraKubeConfigSecret")] if rules else (),
    )


def _mapping(infra: str, guest: str, what: str) -> Schema:
    fields = {
        "group": string("Classes of one group belong together.", max_len=MAX_NAME),
        infra: string(f"{what} of the infra cluster.", max_len=MAX_NAME),
        guest: string(f"{what} made in the guest.", max_len=MAX_NAME),
    }
    return array(obj(fields, required=(infra, guest)), f"Which {what} of the guest is which of infra.", max_items=50)


def storage_driver() -> Schema:
    """Which classes are mapped may change; whether any are may not, as volumes are there by then."""
    manual = obj(
        {
            "storageClassMapping": _mapping("infraStorageClassName", "guestStorageClassName", "StorageClass"),
            "volumeSnapshotClassMapping": _mapping(
                "infraVolumeSnapshotClassName", "guestVolumeSnapshotClassName", "VolumeSnapshotClass"
            ),
        },
        "Classes by name.",
    )
    fields = {
        "type": string(
            "None, the infra default class, or named classes.",
            enum=("None", "Default", "Manual"),
            rules=[immutable("storageDriver.type")],
        ),
        "manual": manual,
    }
    fields["type"]["default"] = "Default"
    rules = [
        rule("self.type == 'Manual' || !has(self.manual)", "manual is forbidden unless type is Manual"),
    ]
    return obj(fields, "How the guest gets volumes from infra.", rules=rules)


def cluster_block() -> Schema:
    fields = {
        "baseDomainPassthrough": boolean(
            "Takes the guest's apps domain from the infra cluster and routes it through.",
            rules=[immutable("baseDomainPassthrough")],
        ),
        "generateID": string(
            "A random part of the names of infra resources.", max_len=11, rules=[immutable("generateID")]
        ),
        "credentials": credentials(),
        "storageDriver": storage_driver(),
    }
    rules = [kept("generateID"), settled("credentials"), kept("storageDriver"), kept("baseDomainPassthrough")]
    return obj(fields, "Settings of the KubeVirt platform.", rules=rules)


def node_block() -> Schema:
    persistent = obj(
        {
            "size": quantity("Size of the disk.", default=defaults.ROOT_SIZE),
            "storageClass": string("StorageClass of the disk.", max_len=255),
            "accessModes": array(string(enum=ACCESS_MODES), "Access modes of the disk.", max_items=10, unique=True),
            "volumeMode": string("Block or Filesystem.", enum=("Filesystem", "Block")),
        },
        "The volume behind the root disk.",
    )
    root_volume = obj(
        {
            "type": string("Kind of the root disk.", enum=("Persistent",), default="Persistent"),
            "persistent": persistent,
            "diskImage": obj(
                {"containerDiskImage": string("A container disk.", max_len=2048)},
                "Boot image instead of the release's own.",
            ),
            "cacheStrategy": obj(
                {"type": string("None, or one imported volume that is cloned.", enum=("None", "PVC"), default="None")},
                "How the boot image is kept on the infra cluster.",
                required=("type",),
            ),
        },
        "The root disk of each virtual machine.",
        default={"type": "Persistent", "persistent": {"size": defaults.ROOT_SIZE}},
    )
    compute = obj(
        {
            "memory": quantity("Memory of each virtual machine.", default=defaults.MEMORY),
            "cores": integer("Cores of each virtual machine.", minimum=1, maximum=MAX_CORES, default=defaults.CORES),
            "qosClass": string(
                "Guaranteed reserves what is asked for.", enum=("Burstable", "Guaranteed"), default="Burstable"
            ),
        },
        "Size of each virtual machine.",
        default={"memory": defaults.MEMORY, "cores": defaults.CORES},
    )
    network = obj(
        {
            "name": string(
                "NetworkAttachmentDefinition as namespace/name.", min_len=1, max_len=255, pattern=NETWORK_PATTERN
            )
        },
        required=("name",),
    )
    device = obj(
        {
            "deviceName": string("Name of the device as KubeVirt permits it.", min_len=1, max_len=255),
            "count": integer("How many each machine gets.", minimum=1, maximum=MAX_DEVICE_COUNT, default=1),
        },
        required=("deviceName",),
    )
    fields = {
        "rootVolume": root_volume,
        "compute": compute,
        "networkInterfaceMultiqueue": string(
            "One queue per core on virtual interfaces.", enum=("Enable", "Disable"), default="Enable"
        ),
        "additionalNetworks": array(network, "Further interfaces.", max_items=20),
        "attachDefaultNetwork": boolean("Whether the pod network is attached.", default=True),
        "nodeSelector": labels("Infra nodes the machines may run on.", 100),
        "hostDevices": array(device, "Devices of infra nodes given to each machine.", max_items=10),
    }
    rules = [
        rule(
            "!has(self.attachDefaultNetwork) || self.attachDefaultNetwork || "
            "(has(self.additionalNetworks) && size(self.additionalNetworks) > 0)",
            "attachDefaultNetwork can only be false when additionalNetworks is not empty",
        )
    ]
    return obj(fields, "Settings of the KubeVirt platform.", rules=rules)
