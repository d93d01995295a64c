"""What a pass over a HostedCluster does, in order; phases in one row run at the same time."""

from __future__ import annotations

from hcp.hostedcluster.phases import (
    addresses,
    audit_webhook,
    authentication,
    authorities,
    catalogs,
    certificates,
    cluster_api,
    configuration,
    controllers,
    copies,
    encryption_key,
    etcd,
    foreign_etcd,
    guest,
    ingress,
    kube_apiserver,
    limits,
    login,
    machines_rest,
    namespace,
    observe,
    projection,
    published_certificates,
    publishing,
    pulling,
    release,
    rotation,
    rules,
    signing_key,
    storage,
    turn,
    updates,
)
from hcp.hostedcluster.scope import Learned, Scope, learn
from hcp.runtime.phases import Phase, Phases

PHASES: Phases[Scope, Learned] = Phases(
    "hostedcluster",
    [
        Phase("configuration", configuration.run),
        Phase("turn", turn.run),
        (Phase("namespace", namespace.run), Phase("release", release.run, critical=False)),
        (Phase("projection", projection.run), Phase("updates", updates.run, critical=False)),
        (
            Phase("authorities", authorities.run),
            Phase("publishing", publishing.run),
            Phase("rules", rules.run),
            Phase("audit-webhook", audit_webhook.run),
            Phase("signing-key", signing_key.run),
            Phase("encryption-key", encryption_key.run),
            Phase("foreign-etcd", foreign_etcd.run),
            Phase("copies", copies.run, critical=False),
            Phase("pulling", pulling.run, critical=False),
        ),
        (Phase("certificates", certificates.run), Phase("authentication", authentication.run)),
        (
            Phase("etcd", etcd.run),
            Phase("controllers", controllers.run),
            Phase("cluster-api", cluster_api.run, critical=False),
            Phase("addresses", addresses.run),
        ),
        Phase("published-certificates", published_certificates.run),
        Phase("kube-apiserver", kube_apiserver.run),
        Phase("limits", limits.run, critical=False),
        Phase("observe", observe.run, always=True),
        Phase("ingress", ingress.run, critical=False),
        Phase("login", login.run, critical=False),
        Phase("catalogs", catalogs.run, critical=False),
        Phase("guest", guest.run, always=True),
        Phase("storage", storage.run, critical=False),
        Phase("rotation", rotation.run, critical=False),
    ],
    learn,
)
# While a cluster is paused its machines rest too, and nothing else is touched.
RESTING: Phases[Scope, Learned] = Phases("hostedcluster", [Phase("machines-rest", machines_rest.run)], learn)
