"""What runs in this process, from top to bottom: every controller, and what they hand to each other.

What each of them follows, writes and says is listed in docs/controllers.md.
"""

from __future__ import annotations

from hcp.guest.keeper import Keeper
from hcp.guest.lost_nodes import LostNodes
from hcp.guest.node_certificates import NodeCertificates
from hcp.guest.node_labels import NodeLabels
from hcp.guest.platform.keeper import Platform
from hcp.guest.sessions import GuestSessions
from hcp.guest.views import Views
from hcp.hostedcluster.controller import HostedClusters
from hcp.hostedcluster.etcd_maintenance import EtcdMaintenance
from hcp.hostedcluster.etcd_membership import EtcdMembership
from hcp.ignition.certificates import EndpointCertificates
from hcp.kubevirt.evacuations import Evacuations
from hcp.kubevirt.infra import InfraClients
from hcp.kubevirt.isolation import Isolation
from hcp.kubevirt.load_balancers import LoadBalancers
from hcp.kubevirt.machine_sleep import MachineSleep
from hcp.kubevirt.repairs import Repairs
from hcp.kubevirt.sessions import Sessions
from hcp.nodepool.controller import node_pools
from hcp.nodepool.scope import ReleaseSource
from hcp.operator.cluster_api import ClusterApi
from hcp.operator.support import Support
from hcp.runtime import Controller
from hcp.runtime.context import OperatorContext


def everything(ctx: OperatorContext, support: Support, *, own_cluster_api: bool) -> list[Controller]:
    """All controllers, connected to their watches. The caller starts the informers, then runs them."""
    # One watched view of each guest, begun when its API answers.
    views = Views()
    ctx.closers.append(views.close)

    # Beside the passes over HostedClusters: the inside of guests, how full each etcd is, and who its members are. A
    # guest or an etcd that hangs holds up nobody; what was found is in the next pass's status.
    guests = Keeper(ctx, views)
    care = EtcdMaintenance(ctx)
    membership = EtcdMembership(ctx)

    # What clusters with nodes tell about themselves from inside: version, parts, settings.
    platform = Platform(ctx)

    # Machines of clusters that fall asleep or wake up.
    machines = sleeping_machines(ctx)

    # HostedClusters: control planes and their status.
    clusters = HostedClusters(ctx, guests, care, membership, platform, machines)

    return [
        clusters.wire(),
        guests.wire(),
        care.controller,
        membership.controller,
        platform.controller,
        *for_nodes(ctx, views, clusters.release, machines),
        # Cluster API itself, unless this management cluster has its own.
        *([ClusterApi(ctx, support).wire()] if own_cluster_api else []),
    ]


def sleeping_machines(ctx: OperatorContext) -> MachineSleep:
    """With the sessions that everything about nodes shares: one joins the view of a guest that has node pools with what
    is known of where its machines run."""
    return MachineSleep(ctx, InfraClients(ctx.client, ctx.guests.pool), Sessions())


def for_nodes(ctx: OperatorContext, views: Views, releases: ReleaseSource, machines: MachineSleep) -> list[Controller]:
    """What concerns nodes and the machines they run on."""
    infras, sessions = machines.infras, machines.sessions
    guests = GuestSessions(ctx, infras, views, sessions)

    # Sick nodes: their virtual machine is restarted before it is replaced.
    repairs = Repairs(ctx, sessions)
    views.on_new(lambda hosted, view: view.on_node(lambda name: repairs.node_changed(hosted, name)))
    views.on_new(lambda hosted, view: view.on_node(lambda name: machines.node_changed(hosted, name)))

    # Machines whose infra node is drained; pools tell how far they are.
    evacuations = Evacuations(ctx, sessions)

    return [
        # NodePools: node configuration, templates and MachineDeployments, and their status.
        node_pools(ctx, infras, releases, guests, evacuations),
        # The certificate of the server that gives nodes their first document, and its node port: one for all clusters.
        *([EndpointCertificates(ctx).wire()] if ctx.shard.first else []),
        # The NetworkPolicy that keeps machines off the networks of the cluster they run in.
        Isolation(ctx, infras).wire(),
        # Inside guests: who may join, and what nodes are labelled with.
        guests.wire(),
        NodeCertificates(ctx, sessions, views).wire(),
        NodeLabels(ctx, sessions, views).wire(),
        # Nodes whose machine has ended let go of their volumes.
        LostNodes(ctx, sessions, views).wire(),
        # Where machines run: load balancers for Services of guests, repair, and leaving.
        LoadBalancers(ctx, sessions).wire(),
        repairs.wire(),
        evacuations.wire(),
        # Where machines run: those of clusters that sleep.
        machines.wire(),
    ]
