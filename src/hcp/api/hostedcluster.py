"""HostedCluster: what a tenant asks for, and what became of it."""

from __future__ import annotations

from typing import Any

from hcp.api import autoscaling, capabilities, domains, kubevirt, names, networking, operators, parts, storage
from hcp.api.configuration import configuration
from hcp.api.configuration.images import image_content_sources
from hcp.api.crd import column, condition_column, crd
from hcp.api.schema import NAME_PATTERN, Schema, anything, array, boolean, immutable, obj, rule, string, time

AVAILABILITY = ("HighlyAvailable", "SingleReplica")
UUID_PATTERN = r"^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{12}$"
DEFAULT_ISSUER = "https://kubernetes.default.svc"
PAYLOAD_ARCHES = ("Multi", "ARM64", "AMD64", "PPC64LE", "S390X")


def platform() -> Schema:
    others = ("aws", "azure", "ibmcloud", "agent", "powervs", "openstack", "gcp")
    fields = {
        "type": string("Where the nodes run.", enum=parts.PLATFORMS, rules=[immutable("platform.type")]),
        "kubevirt": kubevirt.cluster_block(),
        **{name: anything("Settings of another platform, kept as given.") for name in others},
    }
    return obj(fields, "Where the nodes run.", required=("type",))


def common_fields() -> dict[str, Schema]:
    """The fields a HostedCluster and its HostedControlPlane both have."""
    return {
        "clusterID": string(
            "A UUID of the cluster; made when empty.",
            min_len=36,
            max_len=36,
            pattern=UUID_PATTERN,
            rules=[immutable("clusterID")],
        ),
        "infraID": string(
            "Name of the cluster's infrastructure; made when empty. It becomes the value of labels.",
            max_len=63,
            pattern=NAME_PATTERN,
            rules=[immutable("infraID")],
        ),
        "updateService": string(
            "Where updates are looked up.",
            max_len=2048,
            rules=[rule("self == '' || isURL(self)", "updateService must be a URL")],
        ),
        "channel": string("Channel updates are taken from.", max_len=100),
        "platform": platform(),
        "kubeAPIServerDNSName": domains.kube_apiserver_dns_name(),
        "controllerAvailabilityPolicy": string(
            "How many replicas the control plane has.", enum=AVAILABILITY, default="HighlyAvailable"
        ),
        "infrastructureAvailabilityPolicy": string(
            "How many replicas parts inside the guest have.", enum=AVAILABILITY, default="SingleReplica"
        ),
        "dns": domains.dns(),
        "networking": networking.networking(),
        "autoscaling": autoscaling.autoscaling(),
        "etcd": storage.etcd(),
        "services": networking.services(),
        "pullSecret": parts.local_ref("Secret with .dockerconfigjson for the release's images."),
        "sshKey": parts.local_ref("Secret with id_rsa.pub for the nodes."),
        "issuerURL": string(
            "Issuer of service account tokens.",
            max_len=2048,
            default=DEFAULT_ISSUER,
            rules=[immutable("issuerURL"), rule("self == '' || isURL(self)", "issuerURL must be a URL")],
        ),
        "serviceAccountSigningKey": parts.local_ref("Secret with `key`, a PEM private key, and perhaps `old-key.pub`."),
        "configuration": configuration(),
        "operatorConfiguration": operators.operator_configuration(),
        "auditWebhook": parts.local_ref("Secret with webhook-kubeconfig (inline data only): where audit events go."),
        "imageContentSources": image_content_sources(),
        "additionalTrustBundle": parts.local_ref("ConfigMap with ca-bundle.crt; another name rolls nodes."),
        "secretEncryption": storage.secret_encryption(),
        "fips": boolean("FIPS mode on nodes.", rules=[immutable("fips")]),
        "pausedUntil": parts.paused_until(),
        "olmCatalogPlacement": string(
            "Where operator catalogs run.",
            enum=("management", "guest"),
            default="management",
            rules=[immutable("olmCatalogPlacement")],
        ),
        "nodeSelector": parts.labels("Nodes the control plane may run on.", 256),
        "tolerations": parts.tolerations("Taints the control plane tolerates."),
        "labels": parts.labels("Labels put on the control plane's pods.", 20),
        "capabilities": capabilities.capabilities(),
        "monitoring": capabilities.monitoring(),
    }


def spec() -> Schema:
    fields = {
        "release": parts.release("The release of the whole cluster; a change is an upgrade."),
        "controlPlaneRelease": parts.release("A release for the management side only."),
        **common_fields(),
    }
    rules = [
        *networking.SERVICE_RULES,
        *operators.NETWORK_RULES,
        rule(
            "!has(oldSelf.secretEncryption) || has(self.secretEncryption)",
            "secretEncryption cannot be removed once set",
        ),
        rule(
            "!has(self.serviceAccountSigningKey) || (has(self.issuerURL) && self.issuerURL != '')",
            "serviceAccountSigningKey requires issuerURL",
        ),
    ]
    return obj(
        fields,
        "What is wanted.",
        required=("etcd", "networking", "platform", "pullSecret", "release", "services"),
        rules=rules,
    )


def _encryption_status() -> Schema:
    provider = string("Who encrypts.", enum=("Azure", "AWS", "IBMCloud", "AESCBC"))
    aescbc = obj(
        {
            "secret": obj(
                {"name": string("Name of the Secret.", max_len=253, min_len=1)},
                "The Secret with the key.",
                required=("name",),
            ),
            "dataHash": string("A name of the key that tells nothing about it.", min_len=1, max_len=64),
        },
        "A key out of a Secret.",
        required=("dataHash", "secret"),
    )
    others = {name: anything("A key of another platform.") for name in ("aws", "azure", "ibmCloud")}
    key = obj({"provider": provider, "aescbc": aescbc, **others}, "A key, by reference.", required=("provider",))
    fingerprint = string("A name of the key that tells nothing about it.", min_len=1, max_len=64)
    mark = {"provider": provider, "fingerprint": fingerprint}
    before, after = (obj(mark, f"The key {what} the change.", required=tuple(mark)) for what in ("before", "after"))
    states = ("ReadOnlyDeploy", "WritePromote", "Migrating", "Completed", "Interrupted")
    entry = obj(
        {
            "state": string(
                "How far the change came: the new key is read, is written with, everything is rewritten, done.",
                enum=states,
            ),
            "startedTime": time("When the change began."),
            "completionTime": time("When it was done."),
            "from": before,
            "to": after,
        },
        required=("from", "startedTime", "state", "to"),
    )
    fields = {"activeKey": key, "targetKey": key, "history": array(entry, "Changes of the key.", max_items=5)}
    return obj(fields, "Which key encrypts what is stored.")


def status() -> Schema:
    fields = {
        "conditions": parts.conditions(),
        "version": parts.version_status("Roll-out of the whole cluster.", full=True),
        "controlPlaneVersion": parts.version_status("Roll-out of the management side.", full=False),
        "kubeconfig": parts.local_ref("Secret with the administrator's kubeconfig."),
        "customKubeconfig": parts.local_ref("Secret with the kubeconfig for kubeAPIServerDNSName."),
        "kubeadminPassword": parts.local_ref("Secret with the administrator's password."),
        "ignitionEndpoint": string("Host, or host:port, that serves boot documents."),
        "controlPlaneEndpoint": parts.endpoint("Where the API is published."),
        "oauthCallbackURLTemplate": string("Callback of the OAuth server for an identity provider."),
        "payloadArch": string("Architectures of the release.", enum=PAYLOAD_ARCHES),
        "platform": anything("What the platform reports."),
        "configuration": obj(
            {"authentication": anything("Settings of logging in.")},
            "Reported settings of the guest.",
            keep_unknown=True,
        ),
        "lastSuccessfulEtcdBackupURL": string("Newest backup."),
        "secretEncryption": _encryption_status(),
    }
    return obj(fields, "What is.")


def build() -> dict[str, Any]:
    completed = 'history[?(@.state=="Completed")].version'
    return crd(
        group=names.GROUP,
        version=names.VERSION,
        kind="HostedCluster",
        plural="hostedclusters",
        short_names=("hc", "hcs"),
        doc="A Kubernetes cluster whose control plane runs as pods on this one.",
        spec=spec(),
        status=status(),
        rules=[
            rule(f"!has(oldSelf.spec.{field}) || has(self.spec.{field})", f"{field} is immutable and cannot be removed")
            for field in ("infraID", "clusterID")
        ],
        columns=[
            column("Version", f".status.version.{completed}", "Version of the cluster"),
            column(
                "CP Version", f".status.controlPlaneVersion.{completed}", "Version of its management side", wide=True
            ),
            column("KubeConfig", ".status.kubeconfig.name", "Secret with the kubeconfig"),
            column("Progress", '.status.version.history[?(@.state!="")].state', "Roll-out of the cluster"),
            column("CP Progress", ".status.controlPlaneVersion.history[0].state", "Management side", wide=True),
            column("DP Progress", ".status.version.history[0].state", "Data plane", wide=True),
            condition_column("Available", "Available", doc="Whether the API can be used"),
            condition_column("Progressing", "Progressing", doc="Whether it is changing"),
            condition_column("Message", "Available", "message", "Why it is or is not available"),
        ],
    )
