"""kube-scheduler."""

from __future__ import annotations

import json

from hcp.api import names
from hcp.controlplane import controllers, tuning
from hcp.controlplane.controllers import ROOT
from hcp.controlplane.meta import config_map
from hcp.controlplane.params import Manifest, Params

COMPONENT = "kube-scheduler"
PORT = 10259
CONFIG = "kube-scheduler"
CONTROLLER = controllers.Controller(
    component=COMPONENT,
    port=PORT,
    health="/livez",
    secrets={"kube-scheduler-kubeconfig": "kubeconfig", "scheduler-server": "server"},
    config_maps={CONFIG: "config"},
    size=("2m", "32Mi"),
    size_highly_available=("25m", "64Mi"),
    liveness_period=60,
    liveness_failures=5,
)


def config(p: Params, root: str = ROOT) -> Manifest:
    lease = controllers.lease(p)
    value = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": f"{root}/kubeconfig/kubeconfig"},
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": f"{lease.duration}s",
            "renewDeadline": f"{lease.renew_deadline}s",
            "retryPeriod": f"{lease.retry_period}s",
        },
    }
    return config_map(p, CONFIG, {"config.yaml": json.dumps(value, indent=1, sort_keys=True) + "\n"})


def arguments(p: Params, root: str = ROOT) -> list[str]:
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
        f"--v={tuning.value(p.annotations, names.ANNOTATION_SCHEDULER_VERBOSITY, '1')}",
    ]


def deployment(p: Params, config_hash: str) -> Manifest:
    return controllers.deployment(p, CONTROLLER, arguments(p), config_hash)
