"""Taking monitoring, or Prometheus alone, out of a guest again; and the API of metrics, where nobody can serve it.

An API that is announced and not served is in the way of everybody: tools that ask for all kinds complain, and
namespaces cannot be deleted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from hcp.api.paths import labels_of
from hcp.guest.monitoring import kube_state_metrics, metrics_server, node_exporter, prometheus, web
from hcp.guest.monitoring.plan import NAMESPACE
from hcp.guest.objects import LABELS, SYSTEM, Manifest
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import (
    APISERVICES,
    CONFIGMAPS,
    DAEMONSETS,
    DEPLOYMENTS,
    NAMESPACES,
    ROLEBINDINGS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    STATEFULSETS,
    Resource,
)

# Of Prometheus and those it asks; what has the name of a part has more than one kind.
_PROMETHEUS: tuple[tuple[Resource, str], ...] = (
    (STATEFULSETS, prometheus.NAME),
    (DEPLOYMENTS, kube_state_metrics.NAME),
    (DAEMONSETS, node_exporter.NAME),
    (SERVICES, prometheus.NAME),
    (SERVICES, kube_state_metrics.NAME),
    (CONFIGMAPS, prometheus.CONFIG),
    (CONFIGMAPS, web.CONFIG),
    (SECRETS, web.CERTIFICATE),
    (SERVICEACCOUNTS, prometheus.NAME),
    (SERVICEACCOUNTS, kube_state_metrics.NAME),
    (SERVICEACCOUNTS, node_exporter.NAME),
)
_METRICS: tuple[tuple[Resource, str], ...] = (
    (DEPLOYMENTS, metrics_server.NAME),
    (SERVICES, metrics_server.NAME),
    (CONFIGMAPS, metrics_server.AUTHORITY),
    (SECRETS, metrics_server.CERTIFICATE),
    (SERVICEACCOUNTS, metrics_server.NAME),
)


async def withdraw(client: Client) -> None:
    """The API of metrics, if it is ours."""
    if _ours(await client.get_or_none(APISERVICES, metrics_server.API)):
        await client.delete(APISERVICES, metrics_server.API, missing_ok=True)


async def tidy(client: Client, *, metrics: bool, history: bool) -> None:
    """Take away what is not wanted any more, metrics-server or Prometheus. One question where there never was any."""
    if (metrics and history) or not _ours(await client.get_or_none(NAMESPACES, NAMESPACE)):
        return
    if not metrics:
        await withdraw(client)
        await _delete_wide(client, metrics_server.rights())
        await client.delete(ROLEBINDINGS, metrics_server.READER, SYSTEM, missing_ok=True)
    if not history:
        await _delete_wide(client, [*prometheus.rights(), *kube_state_metrics.rights()])
    if not metrics and not history:
        await client.delete(NAMESPACES, NAMESPACE, missing_ok=True)
        return
    for resource, name in _METRICS if not metrics else _PROMETHEUS:
        with contextlib.suppress(NotFound):
            await client.delete(resource, name, NAMESPACE)


async def _delete_wide(client: Client, objects: Iterable[Manifest]) -> None:
    for one in objects:
        await client.delete(await client.resource_for(one), one["metadata"]["name"], missing_ok=True)


def _ours(live: Manifest | None) -> bool:
    return labels_of(live).items() >= LABELS.items()
