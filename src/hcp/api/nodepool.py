"""NodePool: a number of equal nodes of one hosted cluster."""

from __future__ import annotations

from typing import Any

from hcp.api import kubevirt, names, parts
from hcp.api.crd import column, condition_column, crd
from hcp.api.schema import (
    MAX_NAME,
    NAME_PATTERN,
    Schema,
    anything,
    array,
    boolean,
    duration,
    immutable,
    integer,
    obj,
    rule,
    share,
    string,
    time,
)

# More than any hosted cluster was seen with; a number without an end would fill the management cluster with machines.
MAX_REPLICAS = 2000
ARCHES = ("arm64", "amd64", "ppc64le", "s390x")


def platform() -> Schema:
    others = ("aws", "azure", "ibmcloud", "agent", "powervs", "openstack", "gcp")
    fields = {
        "type": string("Where the nodes run.", enum=parts.PLATFORMS, rules=[immutable("platform.type")]),
        "kubevirt": kubevirt.node_block(),
        **{name: anything("Settings of another platform, kept as given.") for name in others},
    }
    return obj(fields, "Where the nodes run.", required=("type",))


def management() -> Schema:
    rolling = obj(
        {
            "maxUnavailable": share(
                "Nodes that may be missing, as number or percentage.", default=0, most=MAX_REPLICAS
            ),
            "maxSurge": share("Nodes that may be there on top, as number or percentage.", default=1, most=MAX_REPLICAS),
        },
        "How many nodes change at once.",
    )
    fields = {
        "upgradeType": string(
            "Replace makes new machines, InPlace changes them.",
            enum=("Replace", "InPlace"),
            default="Replace",
            rules=[immutable("upgradeType")],
        ),
        "replace": obj(
            {
                "strategy": string(
                    "RollingUpdate, or only when a machine is deleted.",
                    enum=("RollingUpdate", "OnDelete"),
                    default="RollingUpdate",
                ),
                "rollingUpdate": rolling,
            },
            "Settings of Replace.",
            default={"strategy": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            rules=[
                rule(
                    "!has(self.rollingUpdate) || self.strategy == 'RollingUpdate'",
                    "rollingUpdate can only be set when strategy is RollingUpdate",
                )
            ],
        ),
        "inPlace": obj(
            {"maxUnavailable": share("Nodes that may change at once.", default=1, most=MAX_REPLICAS)},
            "Settings of InPlace.",
        ),
        "autoRepair": boolean("Restarts the VMs of unhealthy nodes, then replaces them.", default=False),
    }
    in_place = rule(
        "!has(self.inPlace) || self.upgradeType == 'InPlace'", "inPlace can only be set when upgradeType is InPlace"
    )
    return obj(fields, "How changes reach the nodes.", rules=[in_place])


def spec() -> Schema:
    scaling = obj(
        {
            "min": integer("Fewest nodes.", minimum=0, maximum=MAX_REPLICAS),
            "max": integer("Most nodes.", minimum=1, maximum=MAX_REPLICAS),
        },
        "Lets the load decide the number of nodes.",
        required=("min", "max"),
        rules=[rule("self.max >= self.min", "max must be equal or greater than min")],
    )
    fields = {
        "clusterName": string(
            "The HostedCluster, in the same namespace.",
            min_len=1,
            max_len=MAX_NAME,
            pattern=NAME_PATTERN,
            rules=[immutable("clusterName")],
        ),
        "release": parts.release("The release of the nodes; the cluster's own when absent."),
        "platform": platform(),
        "replicas": integer("How many nodes; none when unset.", minimum=0, maximum=MAX_REPLICAS),
        "autoScaling": scaling,
        "management": management(),
        "config": array(parts.local_ref("ConfigMap with key `config`."), "Machine configuration.", max_items=10),
        "tuningConfig": array(parts.local_ref("ConfigMap with key `tuning`."), "Tuning profiles.", max_items=10),
        "nodeDrainTimeout": duration("How long pods may take to leave a node; no limit when unset or 0."),
        "nodeVolumeDetachTimeout": duration("How long volumes may take to detach; no limit when unset or 0."),
        "nodeLabels": parts.labels("Labels of the nodes.", 50),
        "taints": array(parts.taint(), "Taints of the nodes.", max_items=50),
        "pausedUntil": parts.paused_until(),
        "arch": string("Architecture of the nodes.", enum=ARCHES, default="amd64", rules=[immutable("arch")]),
        "osImageStream": obj(
            {
                "name": string(
                    "Operating system stream.",
                    enum=("rhel-9", "rhel-10"),
                    rules=[rule("oldSelf != 'rhel-10' || self == 'rhel-10'", "osImageStream cannot be downgraded")],
                )
            },
            "Operating system of the nodes.",
        ),
    }
    rules = [
        rule("!has(self.replicas) || !has(self.autoScaling)", "replicas and autoScaling exclude each other"),
        rule(
            "!has(self.autoScaling) || self.autoScaling.min > 0 || self.platform.type in ['AWS', 'Azure', 'KubeVirt']",
            "autoScaling.min can only be 0 on KubeVirt, AWS and Azure",
        ),
        rule("self.arch != 's390x' || self.platform.type == 'KubeVirt'", "arch s390x is only supported on KubeVirt"),
        rule("self.arch != 'arm64' || self.platform.type != 'KubeVirt'", "arch arm64 is not supported on KubeVirt"),
    ]
    return obj(fields, "What is wanted.", required=("clusterName", "management", "platform"), rules=rules)


def status() -> Schema:
    condition = obj(
        {
            "type": string("What the condition is about.", min_len=1, max_len=316),
            "status": string("True, False or Unknown.", enum=("True", "False", "Unknown")),
            "severity": string("How bad it is.", max_len=64),
            "reason": string("One word for machines.", max_len=1024),
            "message": string("A sentence for people.", max_len=32768),
            "lastTransitionTime": time("When the status last changed."),
            "observedGeneration": integer("The generation it speaks about.", fmt="int64"),
        },
        required=("type", "status", "lastTransitionTime"),
    )
    version = obj(
        {
            "ocpVersion": string("Version of the release."),
            "kubeletVersion": string("Version of the kubelet."),
            "readyNodeCount": integer("Nodes that are Ready."),
            "unreadyNodeCount": integer("Nodes that are not."),
        }
    )
    virt = obj(
        {"cacheName": string("Volume that holds the boot image."), "credentials": kubevirt.credentials(rules=False)},
        "What KubeVirt reports.",
        keep_unknown=True,
    )
    fields = {
        "replicas": integer("Nodes there are."),
        "version": string("Version of the nodes."),
        "nodesInfo": obj(
            {"nodeVersions": array(version, "Nodes by version.", max_items=100)}, "About the nodes.", keep_unknown=True
        ),
        "platform": obj({"kubeVirt": virt}, "What the platform reports.", keep_unknown=True),
        "osImageStream": obj({"name": string("Operating system stream.")}, "Operating system of the nodes."),
        "conditions": array(condition, "What is known about the node pool.", max_items=100, keys=("type",)),
    }
    return obj(fields, "What is.")


def build() -> dict[str, Any]:
    return crd(
        group=names.GROUP,
        version=names.VERSION,
        kind="NodePool",
        plural="nodepools",
        short_names=("np", "nps"),
        doc="A number of equal nodes of one hosted cluster.",
        spec=spec(),
        status=status(),
        scale={"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        columns=[
            column("Cluster", ".spec.clusterName", "The HostedCluster"),
            column("Desired Nodes", ".spec.replicas", "How many nodes are wanted", kind="integer"),
            column("Current Nodes", ".status.replicas", "How many there are", kind="integer"),
            condition_column("Autoscaling", "AutoscalingEnabled", doc="Whether the load decides"),
            condition_column("Autorepair", "AutorepairEnabled", doc="Whether unhealthy nodes are replaced"),
            column("Version", ".status.version", "Version of the nodes"),
            condition_column("UpdatingVersion", "UpdatingVersion", doc="Whether a new version is rolled out"),
            condition_column("UpdatingConfig", "UpdatingConfig", doc="Whether new configuration is rolled out"),
            condition_column("Message", "Ready", "message", "Why it is or is not ready"),
        ],
    )
