"""What kube-controller-manager and kube-scheduler have in common: one container that follows the hosted API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hcp.api import names
from hcp.controlplane.meta import MANAGER, component_labels, obj
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import (
    Pod,
    config_volume,
    container,
    go_environment,
    http_probe,
    requests,
    rolling,
    secret_volume,
    template,
)

ROOT = "/etc/kubernetes"


@dataclass(frozen=True, slots=True)
class Controller:
    """What differs between them. Secrets and ConfigMaps are given with the folder below ROOT they appear in."""

    component: str
    port: int
    health: str
    secrets: Mapping[str, str]
    config_maps: Mapping[str, str]
    # (cpu, memory) of a single replica, and of each one when highly available.
    size: tuple[str, str]
    size_highly_available: tuple[str, str]
    liveness_period: int
    liveness_failures: int

    def mounted(self) -> tuple[tuple[str, str], ...]:
        """(kind, name) of everything its pods mount."""
        return (*(("Secret", s) for s in self.secrets), *(("ConfigMap", c) for c in self.config_maps))


@dataclass(frozen=True, slots=True)
class Lease:
    """How long a leader may be silent, in seconds."""

    duration: int
    renew_deadline: int
    retry_period: int


def lease(p: Params) -> Lease:
    """Longer than usual: on a crowded machine a slow API must not end the process.

    A single one competes with nobody and only has to show that it is alone: each sign of life is a write to etcd, and
    with forty idle clusters they add up.
    """
    return Lease(30, 20, 4) if p.highly_available else Lease(60, 45, 15)


def deployment(p: Params, what: Controller, arguments: Sequence[str], config_hash: str) -> Manifest:
    component = what.component
    size = what.size_highly_available if p.highly_available else what.size
    liveness = http_probe(
        what.health, "client", period=what.liveness_period, timeout=15, failures=what.liveness_failures
    )
    main = container(
        component,
        p.image(component),
        [component, *arguments],
        resources=requests(p, component, component, *size),
        ports={"client": what.port},
        mounts={name: f"{ROOT}/{directory}" for name, directory in {**what.secrets, **what.config_maps}.items()},
        env=go_environment(p),
        startupProbe=http_probe(what.health, "client", failures=300),
        readinessProbe=http_probe(what.health, "client", period=10, timeout=5),
        livenessProbe=liveness,
    )
    volumes = [*(secret_volume(n, n) for n in what.secrets), *(config_volume(n, n) for n in what.config_maps)]
    priority = p.annotations.get(names.ANNOTATION_CONTROL_PLANE_PRIORITY) or names.PRIORITY_CONTROL_PLANE
    labels = component_labels(p, component)
    spec = {
        "replicas": p.controllers,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "strategy": rolling(p.controllers),
        "template": template(p, Pod(component, [main], volumes, priority, config_hash)),
    }
    return obj(p, "apps/v1", "Deployment", component, {"spec": spec}, labels=labels | {names.LABEL_MANAGED_BY: MANAGER})
