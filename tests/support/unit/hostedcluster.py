"""A HostedCluster as the command line makes it."""

from __future__ import annotations

import copy
from typing import Any

SERVICES = [
    {"service": "APIServer", "servicePublishingStrategy": {"type": "LoadBalancer"}},
    {"service": "Ignition", "servicePublishingStrategy": {"type": "Route"}},
    {"service": "Konnectivity", "servicePublishingStrategy": {"type": "Route"}},
    {"service": "OAuthServer", "servicePublishingStrategy": {"type": "Route"}},
]
BASE: dict[str, Any] = {
    "apiVersion": "hypershift.openshift.io/v1beta1",
    "kind": "HostedCluster",
    "metadata": {
        "name": "demo",
        "namespace": "clusters",
        "uid": "uid-1",
        "generation": 1,
        "resourceVersion": "5",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "release": {"image": "registry.example/release:1"},
        "pullSecret": {"name": "demo-pull-secret"},
        "platform": {"type": "KubeVirt", "kubevirt": {"generateID": "abcdefghij"}},
        "networking": {
            "networkType": "OVNKubernetes",
            "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
            "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
        },
        "etcd": {"managementType": "Managed", "managed": {"storage": {"persistentVolume": {"size": "8Gi"}}}},
        "services": SERVICES,
        "controllerAvailabilityPolicy": "SingleReplica",
        "olmCatalogPlacement": "management",
        "autoscaling": {},
    },
}


def cluster(**spec: Any) -> dict[str, Any]:
    made = copy.deepcopy(BASE)
    made["spec"] |= spec
    return made


def deployment(name: str, *, available: bool = True, replicas: int = 1) -> dict[str, Any]:
    ready = replicas if available else 0
    return {
        "metadata": {"name": name, "generation": 1},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": 1,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "availableReplicas": ready,
            "unavailableReplicas": replicas - ready,
            "conditions": [{"type": "Available", "status": "True" if available else "False"}],
        },
    }


def etcd(ready: int = 1, replicas: int = 1) -> dict[str, Any]:
    return {"spec": {"replicas": replicas}, "status": {"readyReplicas": ready}}
