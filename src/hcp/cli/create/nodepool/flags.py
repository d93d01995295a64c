"""The flags that describe a KubeVirt worker, shared by `create cluster kubevirt` and `create nodepool kubevirt`."""

from __future__ import annotations

from hcp.cli.engine.command import Flag

VM = "Worker VM"
# What the platform can boot: an arm64 or ppc64le node image for KubeVirt does not exist.
ARCHES = ("amd64", "s390x")

ARCH = Flag(
    "arch", "string", "amd64", "processor architecture of the nodes", choices=ARCHES, ignore_case=True, group=VM
)
UPGRADE_TYPE = Flag(
    "node-upgrade-type",
    "string",
    "",
    "how nodes are upgraded: by new machines or in place (default Replace)",
    choices=("Replace", "InPlace"),
    ignore_case=True,
    group=VM,
)
AUTO_REPAIR = Flag("auto-repair", "bool", False, "replace machines whose node stays unhealthy", group=VM)

KUBEVIRT_FLAGS = (
    Flag("memory", "string", "4Gi", "memory of each VM", metavar="quantity", group=VM),
    Flag("cores", "uint32", 2, "cores of each VM, at least 1", group=VM),
    Flag(
        "root-volume-storage-class", "string", "", "storage class of the VM's disk (default: the cluster's)", group=VM
    ),
    Flag("root-volume-size", "uint32", 32, "size of the VM's disk in Gi, at least 16", group=VM),
    Flag(
        "root-volume-access-modes",
        "string",
        "",
        "access modes of the VM's disk: ReadWriteOnce, ReadWriteMany, ReadOnly, ReadWriteOncePod",
        metavar="a,b",
        group=VM,
    ),
    Flag(
        "root-volume-volume-mode",
        "string",
        "",
        "volume mode of the disk",
        choices=("Block", "Filesystem", ""),
        group=VM,
    ),
    Flag(
        "root-volume-cache-strategy",
        "string",
        "",
        "keep the node image in a PVC and clone it, or import it for every VM",
        choices=("None", "PVC", ""),
        group=VM,
    ),
    Flag(
        "network-multiqueue",
        "string",
        "Enable",
        "several network queues per interface",
        choices=("Enable", "Disable", ""),
        group=VM,
    ),
    Flag(
        "qos-class",
        "string",
        "Burstable",
        "Guaranteed reserves the VM's memory and cores",
        choices=("Burstable", "Guaranteed", ""),
        group=VM,
    ),
    Flag(
        "additional-network",
        "stringArray",
        (),
        "one more network of the VM, given by its NetworkAttachmentDefinition",
        metavar="name:NS/NAD",
        group=VM,
    ),
    Flag(
        "attach-default-network",
        "bool",
        True,
        "attach the VM to the pod network; =false needs an --additional-network",
        group=VM,
    ),
    Flag("vm-node-selector", "stringToString", None, "labels of infra nodes that may run the VMs", group=VM),
    Flag(
        "host-device-name",
        "stringArray",
        (),
        "a device of the infra node passed to each VM, such as nvidia-a100,count:2; one without a count",
        metavar="NAME[,count:N]",
        group=VM,
    ),
    Flag("containerdisk", "string", "", "boot image of the VMs instead of the release's", only="hypershift", group=VM),
)

# Pools of platform None: nobody here makes a machine, so little is left to say about it.
OWN_MACHINES = "Machines of your own"
OWN_ARCH = Flag(
    "arch",
    "string",
    "amd64",
    "processor architecture of the nodes",
    choices=("amd64", "arm64"),
    ignore_case=True,
    group=OWN_MACHINES,
)
OWN_UPGRADE_TYPE = Flag(
    "node-upgrade-type",
    "string",
    "",
    "written into the pool (default InPlace)",
    choices=("Replace", "InPlace"),
    ignore_case=True,
    unused="machines are your own: nobody upgrades them",
    group=OWN_MACHINES,
)
OWN_AUTO_REPAIR = Flag(
    "auto-repair",
    "bool",
    False,
    "replace machines whose node stays unhealthy",
    unused="machines are your own: nobody replaces them",
    group=OWN_MACHINES,
)
