"""Catalogs of operators beside a control plane, served to its machines.

Nothing else leads from a guest's pods into the namespace of its control plane. Machines that run in this namespace
reach the address of a Service there, so they need no tunnel; a policy lets them in, and nobody else.
"""

from __future__ import annotations

from hcp.api import names
from hcp.controlplane.meta import LABEL_COMPONENT, obj
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import Pod, container, requests, rolling, template
from hcp.kubevirt import launchers

PORT = 50051
POLICY = "catalogs"
# What a catalog keeps in memory depends on how much it offers; this one offers most.
_MEMORY, _LARGE = "160Mi", {"redhat-operators": "420Mi"}
# The image is whatever an annotation names.
_MOST = "2Gi"
# Whoever has these labels is a part of the control plane and may talk to the others; the image of a catalog may not.
_OF_PARTS = (LABEL_COMPONENT, names.LABEL_CONTROL_PLANE_NAMESPACE)


def workload(source: str) -> str:
    """The Deployment's name; the Service has that of the source."""
    return f"{source}-catalog"


def service(p: Params, source: str) -> Manifest:
    port = {"name": "grpc", "port": PORT, "protocol": "TCP", "targetPort": "grpc"}
    spec = {"type": "ClusterIP", "selector": {names.LABEL_CATALOG: source}, "ports": [port]}
    return obj(p, "v1", "Service", source, {"spec": spec}, labels={names.LABEL_CATALOG: source})


def policy(p: Params) -> Manifest:
    """The machines of this cluster ask; the catalogs themselves call nobody."""
    machines = {"podSelector": {"matchLabels": {names.LABEL_INFRA_ID: p.infra_id, **launchers.LABELS}}}
    spec = {
        "podSelector": {"matchExpressions": [{"key": names.LABEL_CATALOG, "operator": "Exists"}]},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [machines], "ports": [{"port": PORT, "protocol": "TCP"}]}],
    }
    return obj(p, "networking.k8s.io/v1", "NetworkPolicy", POLICY, {"spec": spec})


def deployment(p: Params, source: str, image: str) -> Manifest:
    """The image decides what is run, as it does in a guest. A new one takes over when it serves."""
    name = workload(source)
    mark = {names.LABEL_CATALOG: source}
    priority = p.annotations.get(names.ANNOTATION_CONTROL_PLANE_PRIORITY) or names.PRIORITY_CONTROL_PLANE
    pod = template(p, Pod(name, [_registry(p, name, source, image)], [], priority, "", labels=mark, grace=5))
    labels = pod["metadata"]["labels"]
    pod["metadata"]["labels"] = {key: value for key, value in labels.items() if key not in _OF_PARTS}
    if p.uid is not None:
        # Images of catalogs let this group write what they compute at their start.
        pod["spec"]["securityContext"] |= {"runAsGroup": 0}
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": mark},
        "strategy": rolling(1),
        "template": pod,
    }
    return obj(p, "apps/v1", "Deployment", name, {"spec": spec}, labels={"app": name, **mark})


def _registry(p: Params, name: str, source: str, image: str) -> Manifest:
    def probe(period: int, failures: int) -> Manifest:
        return {"grpc": {"port": PORT}, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": failures}

    made = container(
        "registry",
        image,
        (),
        resources=requests(p, name, "registry", "10m", _LARGE.get(source, _MEMORY)) | {"limits": {"memory": _MOST}},
        ports={"grpc": PORT},
        startupProbe=probe(2, 300),
        readinessProbe=probe(10, 3),
        livenessProbe=probe(30, 5),
    )
    del made["command"]
    made["securityContext"]["readOnlyRootFilesystem"] = False
    if "@" not in image:
        made["imagePullPolicy"] = "Always"
    return made
