"""Who may talk to the pods of a hosted namespace: nobody, but for the named exceptions; and whom they may talk to.

A tenant has the API server call what it likes: webhooks and conversions by URL, issuers of tokens. So the pods of a
control plane reach the world, but of the management cluster only their own namespace and DNS. Webhooks by Service go
through konnectivity to the guest's own nodes and need no rule here.
"""

from __future__ import annotations

from typing import Any

from hcp.api import defaults, names
from hcp.controlplane.meta import LABEL_COMPONENT, obj
from hcp.controlplane.params import AGENT_PORT, Manifest, Params
from hcp.kubevirt import egress

POLICY_GROUP = "network.openshift.io/policy-group"


def _policy(p: Params, name: str, selector: dict[str, Any], ingress: list[dict[str, Any]]) -> Manifest:
    spec: Manifest = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}
    return obj(p, "networking.k8s.io/v1", "NetworkPolicy", name, {"spec": spec})


def _labelled_namespace(key: str, value: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {key: value}}}


def _operator(p: Params) -> dict[str, Any]:
    """The operator asks etcd how full it is; its client certificate decides what else it may do."""
    home = {"matchLabels": {"kubernetes.io/metadata.name": p.operator_namespace}}
    peer = {"namespaceSelector": home, "podSelector": {"matchLabels": {"name": "operator"}}}
    return {"from": [peer], "ports": [{"port": 2379, "protocol": "TCP"}]}


def policies(p: Params) -> list[Manifest]:
    api = {"matchLabels": {"app": "kube-apiserver"}}
    components = {"matchExpressions": [{"key": LABEL_COMPONENT, "operator": "Exists"}]}
    # Worker VMs and the pods that copy their disks have policies of their own; theirs is not our traffic to refuse.
    foreign = ("kubevirt.io", "cdi.kubevirt.io")
    others = {"matchExpressions": [{"key": key, "operator": "DoesNotExist"} for key in foreign]}
    ports = [{"port": defaults.API_PORT, "protocol": "TCP"}]
    own = {"podSelector": {"matchLabels": {names.LABEL_CONTROL_PLANE_NAMESPACE: p.namespace}}}
    result = [
        _policy(p, "default-deny", others, []),
        _policy(p, "same-namespace", components, [{"from": [own]}]),
        _policy(p, "openshift-ingress", components, [{"from": [_labelled_namespace(POLICY_GROUP, "ingress")]}]),
        _policy(p, "openshift-monitoring", components, [{"from": [_labelled_namespace(POLICY_GROUP, "monitoring")]}]),
        _policy(p, "kas", api, [{"ports": ports}]),
    ]
    if not p.foreign_etcd:
        result.append(_policy(p, "operator-to-etcd", {"matchLabels": {"app": "etcd"}}, [_operator(p)]))
    if p.published("Konnectivity").type in ("NodePort", "LoadBalancer"):
        agents = [{"ports": [{"port": AGENT_PORT, "protocol": "TCP"}]}]
        result.append(_policy(p, "nodeport-konnectivity-kas", api, agents))
    return [*result, *_egress(p, components, own)]


def _egress(p: Params, components: dict[str, Any], own: dict[str, Any]) -> list[Manifest]:
    """What components may call; those that carry a label of ours also the management API, and of it only that port."""
    published = egress.routers() if any(one.type == "Route" for one in p.publishing.values()) else []
    rules = [{"to": [own, *egress.outside(p.hidden_networks), *published]}, *egress.dns()]
    wanting = {"matchLabels": {names.LABEL_NEED_MANAGEMENT_API: "true"}}
    api = [egress.to_address(address, port) for address, port in p.management_api]
    return [_outwards(p, "component-egress", components, rules), _outwards(p, "management-kas", wanting, api)]


def _outwards(p: Params, name: str, selector: dict[str, Any], rules: list[dict[str, Any]]) -> Manifest:
    spec: Manifest = {"podSelector": selector, "policyTypes": ["Egress"], "egress": rules}
    return obj(p, "networking.k8s.io/v1", "NetworkPolicy", name, {"spec": spec})
