"""Images of what measures inside hosted clusters. Made when somebody wants to know, not before."""

from __future__ import annotations

from hcp.payload.image import Image, binaries, version_of

METRICS, PROMETHEUS, NODES = "metrics-server", "prometheus", "node-exporter"
STATE_METRICS_VERSION = "2.20.0"


def metrics_versions() -> dict[str, str]:
    """Name in a release, as OpenShift has it, and version: what `kubectl top` and autoscalers of pods ask."""
    return {"kube-metrics-server": version_of(METRICS)}


def versions() -> dict[str, str]:
    """The same of Prometheus and those it asks."""
    return {
        "kube-state-metrics": STATE_METRICS_VERSION,
        "prometheus": version_of(PROMETHEUS),
        "prometheus-node-exporter": version_of(NODES),
    }


def monitoring_images() -> list[Image]:
    """promtool is how people ask a Prometheus that answers nobody but its own certificate."""
    known = {**metrics_versions(), **versions()}
    programs = {
        "kube-metrics-server": (METRICS, ("metrics-server",)),
        "kube-state-metrics": (METRICS, ("kube-state-metrics",)),
        "prometheus": (PROMETHEUS, ("prometheus", "promtool")),
        "prometheus-node-exporter": (NODES, ("node_exporter",)),
    }
    return [
        Image(name, known[name], binaries(component, *commands), entrypoint=(commands[0],))
        for name, (component, commands) in programs.items()
    ]
