from __future__ import annotations

import json
from typing import Any

from tests.support.unit.controlplane import IMAGES, params

from hcp.controlplane import konnectivity
from hcp.guest import canary, manifests
from hcp.guest.ingress_plan import GuestIngress
from hcp.guest.look import waiting
from hcp.guest.objects import GuestParams

AGENT = ("DaemonSet", "konnectivity-agent")


def guest(**changes: Any) -> GuestParams:
    base: dict[str, Any] = {"images": IMAGES, "own_network": True, "highly_available": False}
    return GuestParams(params(), **(base | changes))


def names(g: GuestParams) -> set[tuple[str, str]]:
    return {(m["kind"], m["metadata"]["name"]) for m in manifests.objects(g)}


def test_everything_for_the_first_node_is_there() -> None:
    found = names(guest())
    for part in ("konnectivity-agent", "kube-proxy", "kube-flannel"):
        assert ("DaemonSet", part) in found
    assert ("Deployment", "coredns") in found
    assert ("Service", "kube-dns") in found
    assert ("ClusterRoleBinding", "hcp:node-bootstrapper") in found


def test_another_network_installs_none() -> None:
    assert not {n for n in names(guest(own_network=False)) if "flannel" in n[1]}


def test_what_the_release_lacks_is_not_deployed() -> None:
    few = {k: v for k, v in IMAGES.items() if k not in ("flannel", "coredns")}
    assert not {n for n in names(guest(images=few)) if n[1] in ("coredns", "kube-flannel", "kube-dns")}


def test_an_annotation_chooses_the_image_of_the_tunnels_agent() -> None:
    chosen = params(annotations={"hypershift.openshift.io/konnectivity-agent-image": "mine.example/agent:1"})
    found = manifests.objects(GuestParams(chosen, images=IMAGES, own_network=True, highly_available=False))
    assert "mine.example/agent:1" in json.dumps([m for m in found if m["kind"] == "DaemonSet"])


def test_a_node_is_reached_by_its_own_agent_and_all_else_by_any() -> None:
    [agent] = [m for m in manifests.objects(guest()) if (m["kind"], m["metadata"]["name"]) == AGENT]
    [container] = agent["spec"]["template"]["spec"]["containers"]
    assert "--agent-identifiers=host=$(NODE_ADDRESS)&default-route=true" in container["command"]
    [address] = container["env"]
    assert (address["name"], address["valueFrom"]["fieldRef"]["fieldPath"]) == ("NODE_ADDRESS", "status.hostIP")
    assert "--proxy-strategies=destHost,defaultRoute" in konnectivity.arguments(params())


def test_a_guest_of_two_families_has_both_in_its_network_and_its_dns() -> None:
    networks = {"cluster_networks": ("10.132.0.0/14", "fd01::/48"), "service_networks": ("172.31.0.0/16", "fd02::/112")}
    g = GuestParams(params(**networks), images=IMAGES, own_network=True, highly_available=False)
    found = {(m["kind"], m["metadata"]["name"]): m for m in manifests.objects(g)}
    dns = found["Service", "kube-dns"]["spec"]
    assert dns["clusterIPs"] == ["172.31.0.10", "fd02::a"] and dns["ipFamilyPolicy"] == "RequireDualStack"
    network = json.loads(found["ConfigMap", "kube-flannel"]["data"]["net-conf.json"])
    assert (network["Network"], network["IPv6Network"]) == ("10.132.0.0/14", "fd01::/48")
    proxy = json.loads(found["ConfigMap", "kube-proxy"]["data"]["config.conf"])
    assert proxy["clusterCIDR"] == "10.132.0.0/14,fd01::/48"
    assert found["EndpointSlice", "kubernetes"]["addressType"] == "IPv4"


def test_nodes_reach_the_api_by_the_advertise_address() -> None:
    objects = manifests.objects(guest())
    (slice_,) = [m for m in objects if m["kind"] == "EndpointSlice"]
    assert slice_["endpoints"][0]["addresses"] == ["172.20.0.1"]
    assert slice_["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes"
    text = json.dumps(objects)
    assert "https://172.20.0.1:6443" in text


def test_the_guest_holds_no_management_credential() -> None:
    text = json.dumps(manifests.objects(guest()))
    assert "clusters-demo" not in text


def test_dns_has_its_fixed_address_and_the_wanted_replicas() -> None:
    for high, replicas in ((False, 1), (True, 2)):
        objects = {(m["kind"], m["metadata"]["name"]): m for m in manifests.objects(guest(highly_available=high))}
        assert objects[("Service", "kube-dns")]["spec"]["clusterIP"] == "172.31.0.10"
        assert objects[("Deployment", "coredns")]["spec"]["replicas"] == replicas


def test_rendering_is_stable() -> None:
    assert manifests.objects(guest()) == manifests.objects(guest())


def test_waiting_names_what_is_late() -> None:
    wanted = [("DaemonSet", "kube-proxy"), ("Deployment", "coredns")]
    proxy = {
        "metadata": {"name": "kube-proxy", "generation": 1},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 2, "numberAvailable": 1},
    }
    dns: dict[str, Any] = {
        "metadata": {"name": "coredns", "generation": 1},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]},
    }
    live = {("DaemonSet", "kube-proxy"): proxy, ("Deployment", "coredns"): dns}
    assert waiting(wanted, live, 0) == ("a ready node",)
    assert waiting(wanted, live, 1) == ("DaemonSet kube-proxy", "Deployment coredns")
    dns["status"]["availableReplicas"] = 1
    assert waiting(wanted, live, 1) == ("DaemonSet kube-proxy",)
    proxy["status"]["numberAvailable"] = 2  # type: ignore[index]
    assert waiting(wanted, live, 2) == ()


def test_the_default_ingress_has_a_canary() -> None:
    assert not {n for n in names(guest()) if "canary" in n[1]}, "nothing in a cluster without nodes"
    given = GuestIngress("apps.demo.test", "reg.test/router@sha256:1", b"certificate", b"key")
    found = {(m["kind"], m["metadata"].get("namespace")): m for m in manifests.objects(guest(ingress=given))}
    route = found["Route", canary.NAMESPACE]
    assert route["spec"]["host"] == "canary-openshift-ingress-canary.apps.demo.test"
    service, pods = found["Service", canary.NAMESPACE], found["DaemonSet", canary.NAMESPACE]
    assert route["spec"]["to"]["name"] == service["metadata"]["name"] == "ingress-canary"
    assert service["spec"]["selector"].items() <= pods["spec"]["template"]["metadata"]["labels"].items()
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    assert container["image"] == given.image, "no image of its own"
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert canary.ANSWER in found["ConfigMap", canary.NAMESPACE]["data"]["haproxy.cfg"]
