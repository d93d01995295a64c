"""The NodePool controller."""

from __future__ import annotations

from hcp.guest.sessions import GuestSessions
from hcp.kubevirt.evacuations import Evacuations
from hcp.kubevirt.infra import InfraClients
from hcp.nodepool.reconcile import NodePoolKind
from hcp.nodepool.scope import ReleaseSource, Tools
from hcp.nodepool.watches import Watches
from hcp.runtime import Controller
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import namespace_of
from hcp.runtime.reconcile import Reconciler


def node_pools(
    ctx: OperatorContext, infras: InfraClients, releases: ReleaseSource, guests: GuestSessions, evacuations: Evacuations
) -> Controller:
    """Connected to its watches; the caller starts the informers, then runs it."""
    watches = Watches(ctx)
    kind = NodePoolKind(Tools(ctx, watches, infras, releases, guests.nodes, evacuations.plans))
    controller = Controller("nodepool", Reconciler(kind), workers=16, group=namespace_of, per_group=8)
    watches.wire(controller)
    guests.on_nodes = watches.look_at_pools
    evacuations.on_change = controller.enqueue
    return controller
