"""What monitoring inside a guest is made from."""

from __future__ import annotations

from dataclasses import dataclass

NAMESPACE = "openshift-monitoring"
# Names in a release, as OpenShift has them.
METRICS_IMAGE = "kube-metrics-server"
PROMETHEUS_IMAGE, STATE_IMAGE, NODE_IMAGE = "prometheus", "kube-state-metrics", "prometheus-node-exporter"
NEEDED = (PROMETHEUS_IMAGE, STATE_IMAGE, NODE_IMAGE)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class GuestMonitoring:
    """From the first node on. Which images the release has says what runs; Prometheus is left out by its capability."""

    # Whom kubelets are signed by, and whom everything of the control plane is.
    kubelet_ca: bytes
    root_ca: bytes
    metrics_server: Pair | None = None
    prometheus: Pair | None = None
    # Whether the API of metrics is announced: not before somebody serves it, and not where somebody else does.
    announced: bool = False
