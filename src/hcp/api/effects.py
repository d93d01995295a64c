"""What a change of a field sets in motion, for the reference that users read.

Fields that cannot change say so in their rules, and those without effect are listed where `AllFieldsHonoured` takes
them from; here are all others of a spec. `tests/unit/api/test_effects.py` keeps the list complete and holds it against
what the builders make of such a change.
"""

from __future__ import annotations

from dataclasses import dataclass

API = "kube-apiserver"
MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
ETCD = "etcd"
EVERYTHING = (ETCD, API, MANAGER, SCHEDULER)


@dataclass(frozen=True)
class Effect:
    """`rolls`: parts of the control plane whose pods are replaced; `machines`: whether nodes are."""

    rolls: tuple[str, ...] = ()
    machines: bool = False
    note: str = ""

    @property
    def text(self) -> str:
        said = []
        if self.rolls == EVERYTHING:
            said.append("rolls the whole control plane")
        elif self.rolls:
            said.append(f"rolls {', '.join(self.rolls)}")
        if self.machines:
            said.append("replaces machines")
        return "; ".join([*(said or ["rolls nothing"]), *([self.note] if self.note else [])])


NOTHING = Effect()
MACHINES = Effect(machines=True)
_PROXY = Effect(
    machines=True,
    note="rolls kube-apiserver too where an issuer of its own is named, and the OAuth server with providers outside",
)

HOSTEDCLUSTER: dict[str, Effect] = {
    "release": Effect(
        EVERYTHING,
        machines=True,
        note="kube-apiserver goes first; only parts whose image is another one; machines of pools that name no release",
    ),
    "controlPlaneRelease": Effect(EVERYTHING, note="kube-apiserver goes first; only parts whose image is another one"),
    "controllerAvailabilityPolicy": Effect(
        EVERYTHING, note="members of etcd join one after the other, or leave; a single one is replaced last"
    ),
    "kubeAPIServerDNSName": Effect((API,), note="its certificate gets the name"),
    "infrastructureAvailabilityPolicy": Effect(note="another number of replicas inside the guest"),
    "networking.apiServer.allowedCIDRBlocks": Effect(note="the load balancer's source ranges change"),
    "networking.clusterNetwork.hostPrefix": NOTHING,
    "etcd.managed.storage.type": NOTHING,
    "etcd.unmanaged": Effect((API,), note="also when the Secret's content changes"),
    "pullSecret": Effect(machines=True, note="another name replaces machines, another content does not"),
    "sshKey": MACHINES,
    "serviceAccountSigningKey": Effect((API, MANAGER)),
    "autoscaling": Effect(note="the autoscaler of node pools starts anew, where one runs"),
    "capabilities": Effect(note="parts inside the guest come or go"),
    "monitoring.metricsSet": Effect(note="PodMonitors of the control plane change"),
    "configuration.apiServer.audit": Effect((API,)),
    "configuration.apiServer.clientCA": Effect(note="kube-apiserver reads the authorities again"),
    "configuration.apiServer.servingCerts": Effect(
        (API,), note="only when other names or Secrets are given; another certificate in a Secret is read again"
    ),
    "configuration.apiServer.tlsSecurityProfile": Effect((API, MANAGER, SCHEDULER)),
    "configuration.authentication": Effect(
        (API,),
        note="only when an issuer comes first or goes, in a release without login; else its file is read again",
    ),
    "configuration.image.additionalTrustedCA": Effect(
        machines=True, note="another name replaces machines, another content does not"
    ),
    "configuration.ingress.appsDomain": Effect(
        note="the router inside reads it: Routes get hosts below it from then on"
    ),
    "configuration.network.serviceNodePortRange": Effect((API,)),
    "configuration.oauth": Effect(note="the OAuth server starts anew; users of HTPasswd come and go without it"),
    "configuration.operatorhub": Effect(note="default catalogs come and go inside the guest"),
    "configuration.proxy.httpProxy": _PROXY,
    "configuration.proxy.httpsProxy": _PROXY,
    "configuration.proxy.noProxy": _PROXY,
    "configuration.proxy.trustedCA": Effect(
        machines=True, note="another name replaces machines, another content does not"
    ),
    "configuration.scheduler.profile": Effect((SCHEDULER,)),
    "auditWebhook": Effect((API,), note="also when the Secret's content changes"),
    "imageContentSources": Effect(machines=True, note="the release is read through them at once"),
    "additionalTrustBundle": Effect(machines=True, note="another name replaces machines, another content does not"),
    "secretEncryption": Effect((API,), note="once for each step: read, write, rewrite, drop"),
    "channel": Effect(note="updates are looked up in the other channel"),
    "updateService": Effect(note="updates are looked up elsewhere"),
    "pausedUntil": Effect(note="the operator stops or goes on"),
    "nodeSelector": Effect(EVERYTHING),
    "tolerations": Effect(EVERYTHING),
    "labels": Effect(EVERYTHING),
    "dns.baseDomain": NOTHING,
    "platform.kubevirt.credentials": NOTHING,
    "platform.kubevirt.storageDriver.manual": Effect(
        note="classes inside the guest come, go or are made anew and its storage driver starts anew; volumes stay"
    ),
}

NODEPOOL: dict[str, Effect] = {
    "release": Effect(machines=True, note="one after the other, within maxSurge and maxUnavailable"),
    "platform.kubevirt": MACHINES,
    "replicas": Effect(note="adds machines, or drains and removes some"),
    "autoScaling": Effect(note="between these the autoscaler moves the number of nodes"),
    "management": NOTHING,
    "config": MACHINES,
    "nodeDrainTimeout": NOTHING,
    "nodeVolumeDetachTimeout": NOTHING,
    "nodeLabels": Effect(note="nodes are labelled in place"),
    "taints": Effect(note="nodes are tainted in place"),
    "pausedUntil": Effect(note="the operator stops or goes on"),
    "tuningConfig": MACHINES,
    "osImageStream": Effect(note="without effect: the release decides"),
}

BY_KIND = {"HostedCluster": HOSTEDCLUSTER, "NodePool": NODEPOOL}


def effect(kind: str, path: str) -> Effect | None:
    """What a change of this field does: its own line, or that of the nearest block around it."""
    known = BY_KIND.get(kind, {})
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        found = known.get(".".join(parts[:length]))
        if found is not None:
            return found
    return None
