"""HostedControlPlane: what Cluster API and tools read about a control plane. The operator writes it, nobody else."""

from __future__ import annotations

from typing import Any

from hcp.api import hostedcluster, names, parts
from hcp.api.crd import column, condition_column, crd
from hcp.api.schema import Schema, anything, boolean, integer, obj, string, time, without_rules


def spec() -> Schema:
    fields = {
        "releaseImage": string("Release of the cluster."),
        "controlPlaneReleaseImage": string("Release of the management side."),
        **hostedcluster.common_fields(),
        "kubeconfig": parts.key_ref("Where the kubeconfig is written."),
    }
    # Its source, the HostedCluster, was checked already, and a rule here could only stop the operator.
    return without_rules(obj(fields, "What is wanted, as the HostedCluster says.", required=("releaseImage",)))


def status() -> Schema:
    fields = {
        "ready": boolean("Whether the API can be used."),
        "initialized": boolean("Whether the API could ever be used."),
        "externalManagedControlPlane": boolean("No Machines belong to the control plane.", default=True),
        "controlPlaneEndpoint": parts.endpoint("Where the API is published."),
        "kubeConfig": parts.key_ref("The administrator's kubeconfig."),
        "customKubeconfig": parts.key_ref("The kubeconfig for kubeAPIServerDNSName."),
        "kubeadminPassword": parts.local_ref("The administrator's password."),
        "versionStatus": parts.version_status("Roll-out of the whole cluster.", full=True),
        "controlPlaneVersion": parts.version_status("Roll-out of the management side.", full=False),
        "version": string("Version of the release. Deprecated."),
        "releaseImage": string("The release that was rolled out. Deprecated."),
        "lastReleaseImageTransitionTime": time("When the release last changed. Deprecated."),
        "nodeCount": integer("Nodes of the guest."),
        "oauthCallbackURLTemplate": string("Callback of the OAuth server for an identity provider."),
        "platform": anything("What the platform reports."),
        "configuration": anything("Reported settings of the guest."),
        "conditions": parts.conditions(),
    }
    return obj(fields, "What is.", keep_unknown=True)


def build() -> dict[str, Any]:
    return crd(
        group=names.GROUP,
        version=names.VERSION,
        kind="HostedControlPlane",
        plural="hostedcontrolplanes",
        short_names=("hcp", "hcps"),
        categories=("cluster-api",),
        doc="The control plane of a hosted cluster, as Cluster API sees it.",
        spec=spec(),
        status=status(),
        columns=[
            column("Version", '.status.versionStatus.history[?(@.state=="Completed")].version', "Version"),
            column("Progress", '.status.versionStatus.history[?(@.state!="")].state', "Roll-out"),
            condition_column("Available", "Available", doc="Whether the API can be used"),
            condition_column("Degraded", "Degraded", doc="Whether a part is missing replicas"),
            condition_column("Message", "Available", "message", "Why it is or is not available"),
        ],
        # Cluster API resolves references to a kind through this label on its definition.
        labels={"cluster.x-k8s.io/v1beta1": names.VERSION},
    )
