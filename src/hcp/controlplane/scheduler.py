"""kube-scheduler."""

from __future__ import annotations

import json

from hcp.api import names
from hcp.controlplane import controllers, tls_profiles, tuning
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
        **profiles(str(p.scheduler_config.get("profile") or "")),
    }
    return config_map(p, CONFIG, {"config.yaml": json.dumps(value, indent=1, sort_keys=True) + "\n"})


def profiles(name: str) -> Manifest:
    """What OpenShift's profiles change. The usual one, LowNodeUtilization, is what kube-scheduler does by itself."""
    if name == "HighNodeUtilization":
        packed = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "NodeResourcesFitArgs",
            "scoringStrategy": {
                "type": "MostAllocated",
                "resources": [{"name": one, "weight": 1} for one in ("cpu", "memory")],
            },
        }
        score = {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}
        # Spreading by balance works against packing.
        score["disabled"] = [{"name": "NodeResourcesFit"}, {"name": "NodeResourcesBalancedAllocation"}]
        made = {"plugins": {"score": score}, "pluginConfig": [{"name": "NodeResourcesFit", "args": packed}]}
    elif name == "NoScoring":
        nothing = {"disabled": [{"name": "*"}]}
        made = {"plugins": {"preScore": nothing, "score": nothing}}
    else:
        return {}
    return {"profiles": [{"schedulerName": "default-scheduler", **made}]}


def arguments(p: Params, root: str = ROOT) -> list[str]:
    kubeconfig = f"{root}/kubeconfig/kubeconfig"
    return [
        f"--config={root}/config/config.yaml",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-tolerate-lookup-failure=true",
        f"--bind-address={p.everywhere}",
        f"--secure-port={PORT}",
        f"--tls-cert-file={root}/server/tls.crt",
        f"--tls-private-key-file={root}/server/tls.key",
        f"--tls-min-version={tls_profiles.of(p.api_config).version}",
        *(f"--{flag}={value}" for flag, value in tls_profiles.chosen_ciphers(p.api_config).items()),
        f"--v={tuning.value(p.annotations, names.ANNOTATION_SCHEDULER_VERBOSITY, '1')}",
    ]


def deployment(p: Params, config_hash: str) -> Manifest:
    return controllers.deployment(p, CONTROLLER, arguments(p), config_hash)
