"""etcd: a StatefulSet with its own CA and volume."""

from __future__ import annotations

from collections.abc import Sequence

from hcp.api import names
from hcp.api.manifests import scraped
from hcp.controlplane.meta import MANAGER, component_labels, obj
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import Pod, container, http_probe, requests, secret_volume, steady_period, template
from hcp.runtime import quantity

COMPONENT = "etcd"
DISCOVERY = "etcd-discovery"
CLIENT = "etcd-client"
# Above this etcd itself warns; recovery and defragmentation take too long.
LARGEST_QUOTA = 8 * 1024**3
# Five write-ahead logs of 64 MiB, the next one, and snapshots.
LOGS = 448 * 1024**2
# Plain HTTP, for probes and metrics only: a kubelet has no client certificate to show.
METRICS_PORT = 2382
TLS = "/etc/etcd/tls"
# How long a member of several goes on after it has left its Service: until every node has been told, new connections
# come to it, and one to a pod that is gone is noticed by nobody for many seconds.
LEAVING = 5
# In the environment of a member that is one of several: what it starts with if it has no data (etcd_members.py).
MEMBERS, STATE = "INITIAL_CLUSTER", "INITIAL_CLUSTER_STATE"
MEMBERS_CONFIG = "etcd-members"


def member_url(p: Params, index: int) -> str:
    return f"https://etcd-{index}.{DISCOVERY}.{p.namespace}.svc:2380"


def quota(size: str) -> int:
    """At which size of the database etcd refuses writes, for a volume of this size.

    Defragmentation writes a second file beside the first, so the volume must hold two and the logs: a full etcd can
    then always be healed, and it never fills its volume.
    """
    volume = int(quantity.parse(size) or 0)
    return max(16 * 1024**2, min(LARGEST_QUOTA, (volume - min(LOGS, volume // 2)) // 2))


def beginning(p: Params) -> tuple[str, str]:
    """With whom a member without data starts, and whether they found a cluster.

    A single member founds one, and is it; of several, who may found one or join is told when they start.
    """
    alone = not p.for_etcd.highly_available
    return (f"etcd-0={member_url(p, 0)}", "new") if alone else (f"$({MEMBERS})", f"$({STATE})")


def arguments(p: Params, name: str, ip: str, data_dir: str = "/var/lib/data", tls: str = TLS) -> list[str]:
    """etcd's command line; `name` and `ip` may be references to the container's environment."""
    host = f"{name}.{DISCOVERY}.{p.namespace}.svc"
    members, state = beginning(p)
    return [
        f"--name={name}",
        f"--data-dir={data_dir}",
        f"--initial-advertise-peer-urls=https://{host}:2380",
        f"--listen-peer-urls=https://{ip}:2380",
        f"--listen-client-urls=https://{ip}:2379,https://localhost:2379",
        f"--advertise-client-urls=https://{host}:2379",
        f"--listen-metrics-urls=http://{ip}:{METRICS_PORT}",
        f"--initial-cluster={members}",
        f"--initial-cluster-token={p.cluster_id or p.infra_id}",
        f"--initial-cluster-state={state}",
        f"--cert-file={tls}/server/server.crt",
        f"--key-file={tls}/server/server.key",
        f"--trusted-ca-file={tls}/server/ca.crt",
        "--client-cert-auth=true",
        f"--peer-cert-file={tls}/peer/peer.crt",
        f"--peer-key-file={tls}/peer/peer.key",
        f"--peer-trusted-ca-file={tls}/peer/ca.crt",
        "--peer-client-cert-auth=true",
        f"--quota-backend-bytes={quota(p.etcd_size)}",
        "--snapshot-count=10000",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=30m",
        "--tls-min-version=TLS1.2",
        "--logger=zap",
        "--log-level=warn",
    ]


def joining(p: Params) -> dict[str, Manifest]:
    """Read anew by every container that starts, so that what may start is decided without another template."""
    if not p.for_etcd.highly_available:
        return {}
    keys = {MEMBERS: "members", STATE: "state"}
    return {name: {"configMapKeyRef": {"name": MEMBERS_CONFIG, "key": key}} for name, key in keys.items()}


def services(p: Params) -> list[Manifest]:
    if p.foreign_etcd:
        return []
    labels = component_labels(p, COMPONENT)
    client = {"name": "client", "port": 2379, "protocol": "TCP", "targetPort": "client"}
    metrics = {"name": "metrics", "port": METRICS_PORT, "protocol": "TCP", "targetPort": "metrics"}
    peer = {"name": "peer", "port": 2380, "protocol": "TCP", "targetPort": "peer"}
    headless: Manifest = {
        "selector": labels,
        "clusterIP": "None",
        # Members must find each other before any of them is ready. One alone looks for nobody: that it is meant by the
        # name it was founded with, etcd knows without asking, and others find it by that name when they join.
        "publishNotReadyAddresses": True,
        "ports": [peer, client],
    }
    front: Manifest = {"selector": labels, "ports": [client, metrics]}
    if not p.for_etcd.highly_available:
        # With one member there is none to choose: the API server's first connection need not wait for its readiness to
        # get around, which takes as long as starting it.
        front["publishNotReadyAddresses"] = True
    elif p.same_node_first:
        # A node that is lost takes the API server with it that used its member; the others do not notice. Without it
        # each connection is to a member that chance chose, and of a lost one TCP learns only after ten seconds.
        front["trafficDistribution"] = "PreferSameNode"
    made = [obj(p, "v1", "Service", CLIENT, {"spec": front}, labels=labels, annotations=scraped(METRICS_PORT))]
    if p.for_etcd.highly_available:
        made.append(obj(p, "v1", "Service", DISCOVERY, {"spec": headless}, labels=labels))
    return made


def stateful_set(
    p: Params, config_hash: str, first: Sequence[Manifest] = (), *, leaves_slowly: bool = True
) -> Manifest:
    """`first`: containers that run before etcd, in a cluster that starts from a snapshot.

    `leaves_slowly`: a member of several first leaves its Service and then ends, where the management cluster can.
    """
    p = p.for_etcd
    leaving: Manifest = {}
    if leaves_slowly and p.highly_available and p.same_node_first:
        leaving = {"lifecycle": {"preStop": {"sleep": {"seconds": LEAVING}}}}
    labels = component_labels(p, COMPONENT)
    strategy: Manifest = {"type": "RollingUpdate"}
    if p.etcd_partition:
        strategy["rollingUpdate"] = {"partition": p.etcd_partition}
    size = ("100m", "256Mi") if p.highly_available else ("6m", "64Mi")
    main = container(
        COMPONENT,
        p.image(COMPONENT),
        ["etcd", *arguments(p, "$(POD_NAME)", "[$(POD_IP)]" if p.inside_six_only else "$(POD_IP)")],
        resources=requests(p, COMPONENT, COMPONENT, *size),
        ports={"client": 2379, "peer": 2380, "metrics": METRICS_PORT},
        mounts={"data": "/var/lib", "server-tls": f"{TLS}/server", "peer-tls": f"{TLS}/peer"},
        writable=["data"],
        env={
            "POD_NAME": {"fieldRef": {"fieldPath": "metadata.name"}},
            "POD_IP": {"fieldRef": {"fieldPath": "status.podIP"}},
            "GOGC": "50",
            **joining(p),
        },
        startupProbe=http_probe("/readyz", "metrics", scheme="HTTP", failures=300),
        readinessProbe=http_probe("/readyz", "metrics", scheme="HTTP", period=steady_period(p), failures=3, timeout=5),
        livenessProbe=http_probe("/livez", "metrics", scheme="HTTP", period=10, failures=6, timeout=10),
        **leaving,
    )
    claim: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": p.etcd_size}},
    }
    if p.etcd_storage_class:
        claim["storageClassName"] = p.etcd_storage_class
    pod = Pod(
        COMPONENT,
        [main],
        [secret_volume("server-tls", "etcd-server-tls"), secret_volume("peer-tls", "etcd-peer-tls")],
        p.annotations.get(names.ANNOTATION_ETCD_PRIORITY) or names.PRIORITY_ETCD,
        config_hash,
        first=first,
    )
    spec: Manifest = {
        "replicas": p.members,
        "serviceName": DISCOVERY,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "updateStrategy": strategy,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "template": template(p, pod),
        "volumeClaimTemplates": [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data", "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: p.namespace}},
                "spec": claim,
            }
        ],
    }
    return obj(
        p, "apps/v1", "StatefulSet", COMPONENT, {"spec": spec}, labels=labels | {names.LABEL_MANAGED_BY: MANAGER}
    )
