"""How every control plane pod is made: security, placement, probes, volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.controlplane.meta import CONFIG_HASH, MANAGER, component_labels
from hcp.controlplane.params import Manifest, Params

CONTROL_PLANE_TAINT = f"{names.GROUP}/control-plane"
CLUSTER_TAINT = f"{names.GROUP}/cluster"


def http_probe(
    path: str, port: int | str, *, scheme: str = "HTTPS", period: int = 1, failures: int = 3, timeout: int = 1
) -> Manifest:
    """A probe. Startup is asked every second: a period of ten costs seconds per hosted cluster."""
    return {
        "httpGet": {"path": path, "port": port, "scheme": scheme},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
        "successThreshold": 1,
    }


def steady_period(p: Params) -> int:
    """Seconds between two readiness probes of what has started (the first follows the startup probe at once).

    A replica that fails should lose its traffic soon; a single one has nobody to lose it to, and with forty clusters on
    a small machine a TLS connection a second for each is a good part of a core.
    """
    return 2 if p.highly_available else 10


def requests(p: Params, component: str, container: str, cpu: str, memory: str) -> Manifest:
    """Resource requests, changed by annotation `resource-request-override.…/<component>.<container>` if present."""
    values = {"cpu": cpu, "memory": memory}
    override = p.annotations.get(f"{names.ANNOTATION_RESOURCE_OVERRIDE_PREFIX}{component}.{container}", "")
    for part in override.split(","):
        key, _, value = part.partition("=")
        if key.strip() in values and value.strip():
            values[key.strip()] = value.strip()
    return {"requests": values}


def container(
    name: str,
    image: str,
    command: Sequence[str],
    *,
    resources: Mapping[str, Any],
    ports: Mapping[str, int] | None = None,
    mounts: Mapping[str, str] | None = None,
    writable: Sequence[str] = (),
    env: Mapping[str, Any] | None = None,
    **more: Any,
) -> Manifest:
    """A container without privileges: read-only root, every mount read-only but the `writable` ones."""
    result: Manifest = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "resources": dict(resources),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if ports:
        result["ports"] = [{"name": n, "containerPort": v, "protocol": "TCP"} for n, v in ports.items()]
    if mounts:
        result["volumeMounts"] = [
            {"name": volume, "mountPath": path} | ({} if volume in writable else {"readOnly": True})
            for volume, path in mounts.items()
        ]
    if env:
        result["env"] = [
            {"name": k, "valueFrom": v} if isinstance(v, Mapping) else {"name": k, "value": str(v)}
            for k, v in env.items()
        ]
    return result | more


def go_environment(p: Params) -> dict[str, str]:
    """Settings of Go for what stands beside etcd and the API server.

    A single replica is for many small clusters on few cores: with one thread of work, idle processes wake each other
    less often, and a core is more than these ever need.
    """
    return {"GOGC": "50"} if p.highly_available else {"GOGC": "50", "GOMAXPROCS": "1"}


def secret_volume(name: str, secret: str, *, keys: Mapping[str, str] | None = None) -> Manifest:
    source: Manifest = {"secretName": secret, "defaultMode": 0o440}
    if keys:
        source["items"] = [{"key": k, "path": v} for k, v in keys.items()]
    return {"name": name, "secret": source}


def config_volume(name: str, config_map: str) -> Manifest:
    return {"name": name, "configMap": {"name": config_map, "defaultMode": 0o440}}


def empty_dir(name: str, *, memory: bool = False, limit: str = "") -> Manifest:
    source: Manifest = {"medium": "Memory"} if memory else {}
    if limit:
        source["sizeLimit"] = limit
    return {"name": name, "emptyDir": source}


@dataclass(frozen=True, slots=True)
class Pod:
    """What differs between components."""

    component: str
    containers: Sequence[Manifest]
    volumes: Sequence[Manifest]
    priority: str
    config_hash: str
    grace: int = 30
    labels: Mapping[str, str] | None = None
    spread: bool = True
    # Another component whose nodes are preferred, where there are several replicas.
    beside: str = ""
    # What runs before the rest, one after the other.
    first: Sequence[Manifest] = ()


def template(p: Params, pod: Pod) -> Manifest:
    """The pod template of a component."""
    security: Manifest = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if p.uid is not None:
        # Without SCCs the user id comes from us: one of its own per hosted namespace.
        security |= {"runAsUser": p.uid, "runAsGroup": p.uid, "fsGroup": p.uid, "fsGroupChangePolicy": "OnRootMismatch"}
    annotations = {CONFIG_HASH: pod.config_hash}
    if restart := p.annotations.get(names.ANNOTATION_RESTART_DATE):
        annotations[names.ANNOTATION_RESTART_DATE] = restart
    spec: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "imagePullSecrets": [{"name": "pull-secret"}],
        "priorityClassName": pod.priority,
        "securityContext": security,
        "terminationGracePeriodSeconds": pod.grace,
        "tolerations": [
            {"key": CONTROL_PLANE_TAINT, "operator": "Equal", "value": "true", "effect": "NoSchedule"},
            {"key": CLUSTER_TAINT, "operator": "Equal", "value": p.namespace, "effect": "NoSchedule"},
            *(dict(t) for t in p.tolerations),
        ],
        "affinity": _affinity(p, pod),
        "containers": list(pod.containers),
        "volumes": list(pod.volumes),
    }
    if pod.first:
        spec["initContainers"] = list(pod.first)
    if p.node_selector:
        spec["nodeSelector"] = dict(p.node_selector)
    labels = {
        **p.labels,
        **component_labels(p, pod.component),
        names.LABEL_MANAGED_BY: MANAGER,
        **(pod.labels or {}),
    }
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _affinity(p: Params, pod: Pod) -> Manifest:
    def node(weight: int, key: str, value: str) -> Manifest:
        expression = {"key": key, "operator": "In", "values": [value]}
        return {"weight": weight, "preference": {"matchExpressions": [expression]}}

    same = {names.LABEL_CONTROL_PLANE_NAMESPACE: p.namespace}
    affinity: Manifest = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                node(50, CONTROL_PLANE_TAINT, "true"),
                node(100, CLUSTER_TAINT, p.namespace),
            ]
        },
    }
    if not p.highly_available:
        affinity["podAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": same},
                        "topologyKey": "kubernetes.io/hostname",
                    },
                }
            ]
        }
    elif pod.spread:
        selector = {"matchLabels": {"app": pod.component, **same}}
        # Preferred, never required: on fewer than three nodes a cluster must still come up; a condition tells.
        affinity["podAntiAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": w, "podAffinityTerm": {"labelSelector": selector, "topologyKey": key}}
                for w, key in ((100, "kubernetes.io/hostname"), (50, "topology.kubernetes.io/zone"))
            ]
        }
        if pod.beside:
            other = {"matchLabels": {"app": pod.beside, **same}}
            # Less than to be on a node of its own.
            affinity["podAffinity"] = {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "podAffinityTerm": {"labelSelector": other, "topologyKey": "kubernetes.io/hostname"}}
                ]
            }
    return affinity


def rolling(replicas: int) -> Manifest:
    """How a Deployment changes its pods."""
    surge, unavailable = (0, 1) if replicas > 2 else (1, 0)
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
