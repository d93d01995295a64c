"""NetworkPolicies of the release's own network: kube-router's firewall on every node, while there is any policy.

flannel joins pods and knows no policies. A cluster without one runs nothing of this. With the last policy the rules
have to go too, and kube-router leaves them behind on purpose: a restart must not open anything. So its pods are first
replaced by some that take the rules away, and the DaemonSet goes when every node has done that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.paths import at
from hcp.guest.objects import (
    GuestParams,
    Manifest,
    account,
    cluster_role,
    cluster_role_binding,
    daemon_set,
    done_once,
    host_path,
    service_account,
)
from hcp.guest.policy_stage import Stage

# Not kube-router's own name: a tenant may have brought one of that name before.
NAME = "network-policy"
ROLE = "hcp:network-policy"
IMAGE = "kube-router"
_STAGE = "hcp/stage"
_LOCK = {"name": "xtables-lock", "mountPath": "/run/xtables.lock"}
_VOLUMES = [host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate")]
# As flannel has them: rules are all it writes.
_RIGHTS = {"privileged": False, "capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}
_HEALTH = 20244
_READ = ["get", "list", "watch"]
# One transaction for each family: first nothing leads to the chains any more, then they are emptied, then they go.
_CLEAN = r"""
set -euo pipefail
for family in iptables ip6tables; do
  rules=$($family-save -t filter | awk '
    /^:KUBE-(ROUTER|POD-FW|NWPLCY)-/ { chains[++n] = substr($1, 2) }
    /^-A (INPUT|FORWARD|OUTPUT) .*-j KUBE-ROUTER-/ { sub(/^-A/, "-D"); jumps[++m] = $0 }
    END {
      if (!n) exit
      print "*filter"
      for (i = 1; i <= n; i++) print ":" chains[i] " - [0:0]"
      for (i = 1; i <= m; i++) print jumps[i]
      for (i = 1; i <= n; i++) print "-X " chains[i]
      print "COMMIT"
    }')
  if [ -n "$rules" ]; then echo "$rules" | $family-restore --noflush; fi
done
for set in $(ipset list -name | grep -E '^(inet6:)?KUBE-(SRC|DST)-' || true); do
  ipset destroy "$set" || { sleep 1; ipset destroy "$set"; }  # the kernel lets go of rules a moment later
done
"""


def possible(g: GuestParams) -> bool:
    """Whether the release can, and the pod network is its own: another one brings its own enforcement."""
    return bool(g.own_network and g.images.get(IMAGE) and g.images.get("flannel"))


def objects(g: GuestParams) -> list[Manifest]:
    image = g.images.get(IMAGE)
    if not image or not possible(g) or g.policies is Stage.OFF:
        return []
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "namespaces", "nodes", "pods", "services"], "verbs": _READ},
        {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": _READ},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    ]
    if g.policies is Stage.ENFORCING:
        pod, unavailable = _enforcing(g, image), "10%"
    else:
        pod, unavailable = _ending(image), "100%"
    marks = {_STAGE: g.policies.value, **(g.trust_mark if g.policies is Stage.ENFORCING else {})}
    return [
        service_account(NAME),
        cluster_role(ROLE, rules),
        cluster_role_binding(ROLE, ROLE, account(NAME)),
        daemon_set(NAME, pod, marks, unavailable),
    ]


def is_ending(live: Mapping[str, Any]) -> bool:
    """Whether this DaemonSet is the one that takes the rules away."""
    return (at(live, "spec.template.metadata.annotations") or {}).get(_STAGE) == Stage.ENDING.value


def _enforcing(g: GuestParams, image: str) -> Manifest:
    p = g.control_plane
    host, port = g.api_address
    families = {"ipv6" if ":" in cidr else "ipv4" for cidr in p.cluster_networks}
    probe = {"path": "/healthz", "port": _HEALTH, "host": "127.0.0.1"}
    container = {
        "name": IMAGE,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "kube-router",
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            *(f"--enable-{family}={str(family in families).lower()}" for family in ("ipv4", "ipv6")),
            *(f"--service-cluster-ip-range={cidr}" for cidr in p.service_networks),
            f"--service-node-port-range={p.node_port_range}",
            f"--health-port={_HEALTH}",
        ],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            # Policies have to hold before the service network works, so the node's own proxy is asked.
            {"name": "KUBERNETES_SERVICE_HOST", "value": host},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(port)},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
        "securityContext": _RIGHTS,
        "readinessProbe": {"httpGet": probe, "periodSeconds": 5},
        "livenessProbe": {"httpGet": probe, "initialDelaySeconds": 120, "periodSeconds": 30, "timeoutSeconds": 10},
        "volumeMounts": [_LOCK],
    }
    return {"serviceAccountName": NAME, "containers": [container], "volumes": _VOLUMES}


def _ending(image: str) -> Manifest:
    """Its pods are ready when their node has no rules any more."""
    clean = {
        "name": "clean",
        "command": ["sh", "-c", _CLEAN],
        "securityContext": _RIGHTS,
        "volumeMounts": [_LOCK],
    }
    return done_once(NAME, image, clean, {"volumes": _VOLUMES})
