"""node-exporter on every node: processors, memory, disks and network of the machine."""

from __future__ import annotations

from hcp.guest.monitoring import shared, web
from hcp.guest.monitoring.plan import NODE_IMAGE
from hcp.guest.objects import GuestParams, Manifest, host_path

NAME = "node-exporter"
PORT = 9100
ROOT = "/host/root"
# The others are for hardware that a virtual machine has not, or cost more than they tell.
COLLECTORS = (
    *("conntrack", "cpu", "diskstats", "filefd", "filesystem", "loadavg", "meminfo", "netdev", "netstat", "os"),
    *("pressure", "sockstat", "stat", "time", "uname", "vmstat"),
)
_NO_DISKS = "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|mqueue|nsfs|overlay|proc|pstore|ramfs|securityfs|squashfs|sysfs|tmpfs|tracefs)$"  # noqa: E501
_NO_PLACES = "^/(dev|proc|sys|run|var/lib/(kubelet|containerd)/.+)($|/)"
_NO_LINKS = "^(veth.*|cni0|lo)$"


def objects(g: GuestParams) -> list[Manifest]:
    words = [
        "node_exporter",
        f"--web.listen-address=:{PORT}",
        f"--web.config.file={web.FILE}",
        f"--path.rootfs={ROOT}",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in COLLECTORS),
        f"--collector.filesystem.fs-types-exclude={_NO_DISKS}",
        f"--collector.filesystem.mount-points-exclude={_NO_PLACES}",
        f"--collector.netdev.device-exclude={_NO_LINKS}",
    ]
    root = {"name": "root", "mountPath": ROOT, "readOnly": True, "mountPropagation": "HostToContainer"}
    container = shared.container(
        NAME,
        g.images[NODE_IMAGE],
        words,
        20,
        env=[{"name": "GOMAXPROCS", "value": "1"}],
        ports=[{"name": "https", "containerPort": PORT, "hostPort": PORT, "protocol": "TCP"}],
        readinessProbe=web.probe("https"),
        volumeMounts=[*web.mounts(), root],
    )
    pod = {
        **shared.pod(NAME, [container], [*web.volumes(), host_path("root", "/", "Directory")]),
        "automountServiceAccountToken": False,
        "hostNetwork": True,
        "hostPID": True,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
    }
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}
    return [
        shared.account(NAME),
        shared.workload("DaemonSet", NAME, pod, {}, updateStrategy=rolling),
    ]
