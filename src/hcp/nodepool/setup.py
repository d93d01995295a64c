"""Wiring the node pool controllers into the operator."""

from __future__ import annotations

from hcp.kubevirt.cloud import Cloud
from hcp.kubevirt.infra import InfraClients
from hcp.nodepool.endpoint import EndpointCertificates
from hcp.nodepool.isolation import Isolation
from hcp.nodepool.reconcile import NodePoolReconciler
from hcp.nodepool.scope import ReleaseSource, Tools
from hcp.nodepool.watches import Watches
from hcp.runtime import Controller
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import namespace_of


async def setup(ctx: OperatorContext, releases: ReleaseSource) -> list[Controller]:
    """All controllers that concern nodes; the informers they asked for are started by the caller."""
    infras = InfraClients(ctx.client, ctx.guests.pool)
    watches = Watches(ctx)
    reconciler = NodePoolReconciler(Tools(ctx, watches, infras, releases))
    pools = Controller("nodepool", reconciler.reconcile, workers=16, group=namespace_of, per_group=8)
    watches.wire(pools)
    return [
        pools,
        EndpointCertificates(ctx).wire(),
        Isolation(ctx, infras).wire(),
        *Cloud(ctx, infras).wire(),
    ]
