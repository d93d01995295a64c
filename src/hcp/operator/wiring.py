"""What runs in this process, from top to bottom: every controller, and what they hand to each other.

What each of them follows, writes and says is listed in docs/controllers.md.
"""

from __future__ import annotations

from hcp.guest.keeper import Keeper
from hcp.guest.views import Views
from hcp.hostedcluster.controller import HostedClusters
from hcp.hostedcluster.etcd_care import EtcdCare
from hcp.ignition.certificates import EndpointCertificates
from hcp.kubevirt.cloud import Cloud
from hcp.kubevirt.infra import InfraClients
from hcp.kubevirt.isolation import Isolation
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

    # Beside the passes over HostedClusters: the inside of guests, and how full each etcd is. A guest or an etcd that
    # hangs holds up nobody; what was found is in the next pass's status.
    guests = Keeper(ctx, views)
    care = EtcdCare(ctx)

    # HostedClusters: control planes and their status.
    clusters = HostedClusters(ctx, guests, care)

    return [
        clusters.wire(),
        guests.wire(),
        care.controller,
        *for_nodes(ctx, clusters.release),
        # Cluster API itself, unless this management cluster has its own.
        *([ClusterApi(ctx, support).wire()] if own_cluster_api else []),
    ]


def for_nodes(ctx: OperatorContext, releases: ReleaseSource) -> list[Controller]:
    """What concerns nodes and the machines they run on."""
    infras = InfraClients(ctx.client, ctx.guests.pool)
    cloud = Cloud(ctx, infras)
    return [
        # NodePools: node configuration, templates and MachineDeployments, and their status.
        node_pools(ctx, infras, releases, cloud),
        # The certificate of the server that gives nodes their first document, and its node port.
        EndpointCertificates(ctx).wire(),
        # The NetworkPolicy that keeps machines off the networks of the cluster they run in.
        Isolation(ctx, infras).wire(),
        # Inside guests with machines: certificates of nodes, their labels and taints, and their load balancers.
        *cloud.wire(),
    ]
