"""About how long things take to make: as long as the last time on this machine, else as long as on a small machine."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.payload.registry import Registry, default_registry
from hcp.payload.store import Store

# Seconds on two cores, from source, with nothing else running.
TYPICAL = {
    "etcd": 100,
    "kubernetes-1.36": 260,
    "kubernetes-1.35": 260,
    "kubernetes-1.37": 260,
    "kubernetes-1.34": 260,
    "containerd": 80,
    "cni-plugins": 10,
    "registry": 85,
    "coredns": 150,
    "kube-router": 130,
    "local-path-provisioner": 60,
    "konnectivity": 60,
    "kubevirt": 560,
    "cdi": 180,
    "cluster-api": 190,
    "cluster-api-kubevirt": 100,
    "flannel": 90,
    "ignition": 40,
    "kwok": 60,
    "conformance-1.36": 200,
    "gateway-conformance": 120,
    "csi-sidecars": 400,
    "cluster-autoscaler": 400,
    "olm": 400,
    "metrics-server": 150,
    "prometheus": 400,
    "node-exporter": 30,
    "metallb": 120,
    "dex": 275,
    "oc": 400,
    "node-disk": 90,
    "runc": 1,
    "haproxy": 3,
    "node-tools": 1,
}
# What is not in the table, by the first word of its name.
KINDS = {"image": 3.0, "release": 3.0, "rootfs": 45.0, "node": 90.0}
OTHER = 30.0


def seconds(names: Iterable[str], store: Store | None = None) -> dict[str, float]:
    """About how long each takes to make."""
    recorded: dict[str, float] = {}
    store = store or Store()
    for name, key in store.artifacts():
        try:
            facts = store.metadata(name, key)
        except (OSError, ValueError):
            continue
        # An artifact from elsewhere took no time at all here: that says nothing about making it.
        if float(facts.get("seconds") or 0) > 0:
            recorded[name] = float(facts["seconds"])
    return {name: recorded.get(name, _typical(name)) for name in names}


def to_make(names: Iterable[str], registry: Registry | None = None, store: Store | None = None) -> float:
    """About how long it takes until all of these are there, with what they are made of."""
    registry, store = registry or default_registry(), store or Store()
    missing: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in missing and not store.artifact(name, registry.key(name)).is_dir():
            missing.add(name)
            pending += registry.get(name).deps
    return sum(seconds(missing, store).values())


def _typical(name: str) -> float:
    return float(TYPICAL.get(name) or KINDS.get(name.partition("-")[0], OTHER))
