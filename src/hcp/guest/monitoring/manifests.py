"""Everything of monitoring inside a guest, in the order in which parts need each other. Pure."""

from __future__ import annotations

from hcp.guest.monitoring import kube_state_metrics, metrics_server, node_exporter, prometheus, shared, web
from hcp.guest.objects import GuestParams, Manifest

# Workloads, as the ClusterOperator names them.
PARTS = (kube_state_metrics.NAME, metrics_server.NAME, node_exporter.NAME, prometheus.NAME)
# Who asks for metrics and who is asked, as their certificate says.
NAMES = (kube_state_metrics.NAME, node_exporter.NAME, prometheus.NAME)


def objects(g: GuestParams) -> list[Manifest]:
    """Nothing in a cluster without nodes, or of a release without any of it."""
    given = g.monitoring
    if given is None:
        return []
    made = [shared.namespace()]
    if given.metrics_server is not None:
        made.append(shared.config(metrics_server.AUTHORITY, {"ca.crt": given.kubelet_ca.decode()}))
        made += metrics_server.objects(g, given)
    if given.prometheus is not None:
        made += [shared.tls_secret(web.CERTIFICATE, given.prometheus), web.config(given.root_ca)]
        made += [*node_exporter.objects(g), *kube_state_metrics.objects(g), *prometheus.objects(g, given.kubelet_ca)]
    return made
