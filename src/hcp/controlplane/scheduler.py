"""kube-scheduler."""

from __future__ import annotations

import json

from hcp.api import names
from hcp.controlplane.meta import LABEL_MANAGED_BY, MANAGER, component_labels, config_map, obj
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import Pod, config_volume, container, http_probe, requests, rolling, secret_volume, template

COMPONENT = "kube-scheduler"
PORT = 10259
ROOT = "/etc/kubernetes"
CONFIG = "kube-scheduler"
SECRETS = {"kube-scheduler-kubeconfig": "kubeconfig", "scheduler-server": "server"}
CONFIG_MAPS = {CONFIG: "config"}


def mounted() -> tuple[tuple[str, str], ...]:
    return (*(("Secret", s) for s in SECRETS), *(("ConfigMap", c) for c in CONFIG_MAPS))


def config(p: Params, root: str = ROOT) -> Manifest:
    value = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": f"{root}/kubeconfig/kubeconfig"},
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "30s",
            "renewDeadline": "20s",
            "retryPeriod": "4s",
        },
    }
    return config_map(p, CONFIG, {"config.yaml": json.dumps(value, indent=1, sort_keys=True) + "\n"})


def arguments(root: str = ROOT) -> list[str]:
    kubeconfig = f"{root}/kubeconfig/kubeconfig"
    return [
        f"--config={root}/config/config.yaml",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-tolerate-lookup-failure=true",
        "--bind-address=0.0.0.0",
        f"--secure-port={PORT}",
        f"--tls-cert-file={root}/server/tls.crt",
        f"--tls-private-key-file={root}/server/tls.key",
        "--tls-min-version=VersionTLS12",
        "--v=1",
    ]


def deployment(p: Params, config_hash: str) -> Manifest:
    size = ("25m", "64Mi") if p.highly_available else ("3m", "32Mi")
    main = container(
        COMPONENT,
        p.image(COMPONENT),
        ["kube-scheduler", *arguments()],
        resources=requests(p, COMPONENT, COMPONENT, *size),
        ports={"client": PORT},
        mounts={name: f"{ROOT}/{directory}" for name, directory in {**SECRETS, **CONFIG_MAPS}.items()},
        env={"GOGC": "50"},
        startupProbe=http_probe("/livez", "client", failures=300),
        readinessProbe=http_probe("/livez", "client", period=5, timeout=5),
        livenessProbe=http_probe("/livez", "client", period=60, timeout=15, failures=5),
    )
    volumes = [*(secret_volume(n, n) for n in SECRETS), *(config_volume(n, n) for n in CONFIG_MAPS)]
    priority = p.annotations.get(names.ANNOTATION_CONTROL_PLANE_PRIORITY) or names.PRIORITY_CONTROL_PLANE
    labels = component_labels(p, COMPONENT)
    spec = {
        "replicas": p.controllers,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "strategy": rolling(p.controllers),
        "template": template(p, Pod(COMPONENT, [main], volumes, priority, config_hash)),
    }
    return obj(p, "apps/v1", "Deployment", COMPONENT, {"spec": spec}, labels=labels | {LABEL_MANAGED_BY: MANAGER})
