from typing import Any

from hcp.kubevirt.infra import credentials
from hcp.kubevirt.loadbalancer import endpoint_slices, first_addresses, infra_name, infra_service, serving, wanted
from hcp.kubevirt.netpol import PolicyInput, virt_launcher_policy
from hcp.kubevirt.nodes import ANNOTATION_SYNCED, node_patch

SERVICE: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default", "uid": "12345678-aaaa-bbbb-cccc-1234567890ab"},
    "spec": {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "loadBalancerClass": "example.com/lb",
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
        "ports": [{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080, "protocol": "TCP"}],
    },
}


def instance(name: str, *addresses: str, phase: str = "Running") -> dict[str, Any]:
    interface = {"ipAddress": addresses[0] if addresses else None, "ipAddresses": list(addresses)}
    overlay = {"ipAddress": "10.132.0.1", "ipAddresses": ["10.132.0.1"]}
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "status": {"phase": phase, "nodeName": "node-a", "interfaces": [interface, overlay]},
    }


def test_the_infra_service_keeps_what_matters() -> None:
    found = infra_service(SERVICE, "ns", "demo-x")
    spec = found["spec"]
    assert found["metadata"]["name"] == infra_name(SERVICE) == "a12345678aaaabbbbcccc1234567890a"
    assert "selector" not in spec
    assert spec["ports"] == [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 30080}]
    assert spec["externalTrafficPolicy"] == "Local"
    assert spec["loadBalancerClass"] == "example.com/lb"
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 60}}
    assert found["metadata"]["labels"]["cluster.x-k8s.io/tenant-service-name"] == "web"


def test_slices_hold_only_the_first_interface() -> None:
    infra = {**infra_service(SERVICE, "ns", "demo-x")}
    infra["metadata"]["uid"] = "u"
    slices = endpoint_slices(SERVICE, infra, [instance("b", "10.0.0.2"), instance("a", "10.0.0.1", "fd00::1")])
    assert [item["endpoints"][0]["addresses"] for item in slices] == [["10.0.0.1"], ["10.0.0.2"]]
    assert slices[0]["ports"] == [{"name": "http", "protocol": "TCP", "port": 30080}]
    assert slices[0]["endpoints"][0]["nodeName"] == "node-a"
    infra["spec"]["ipFamilies"] = ["IPv4", "IPv6"]
    names = [s["metadata"]["name"] for s in endpoint_slices(SERVICE, infra, [instance("a", "10.0.0.1", "fd00::1")])]
    assert names == [f"{infra_name(SERVICE)}-a-ipv4", f"{infra_name(SERVICE)}-a-ipv6"]


def test_local_policy_limits_the_nodes() -> None:
    infra = infra_service(SERVICE, "ns", "demo-x")
    both = [instance("a", "10.0.0.1"), instance("b", "10.0.0.2")]
    assert len(endpoint_slices(SERVICE, infra, both, {"b"})) == 1
    assert endpoint_slices(SERVICE, infra, both, set()) == []


def test_machines_that_do_not_run_are_not_ready() -> None:
    infra = infra_service(SERVICE, "ns", "demo-x")
    [item] = endpoint_slices(SERVICE, infra, [instance("a", "10.0.0.1", phase="Scheduling")])
    assert item["endpoints"][0]["conditions"]["ready"] is False
    assert endpoint_slices(SERVICE, infra, [instance("a")]) == []
    going = instance("a", "10.0.0.1")
    going["metadata"]["deletionTimestamp"] = "now"
    assert not serving(going)


def test_addresses_and_wishes() -> None:
    assert first_addresses(instance("a", "fe80::1", "10.0.0.1")) == {"IPv4": "10.0.0.1"}
    assert first_addresses({"metadata": {}}) == {}
    assert wanted(SERVICE)
    assert not wanted({**SERVICE, "spec": {"type": "ClusterIP"}})
    assert not wanted({**SERVICE, "metadata": {**SERVICE["metadata"], "deletionTimestamp": "now"}})


def test_the_policy_of_virt_launchers() -> None:
    given = PolicyInput("ns", "demo-x", ["10.128.0.0/14", "172.30.0.0/16", "fd01::/48"], ["192.0.2.1", "example.com"])
    policy = virt_launcher_policy(given)
    own = {"hypershift.openshift.io/infra-id": "demo-x", "kubevirt.io": "virt-launcher"}
    assert policy["spec"]["podSelector"] == {"matchLabels": own}
    first, node_port = policy["spec"]["egress"]
    assert first["to"][0] == {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.128.0.0/14", "172.30.0.0/16"]}}
    assert first["to"][1] == {"ipBlock": {"cidr": "::/0", "except": ["fd01::/48"]}}
    assert node_port == {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}]}
    text = str(first)
    for peer in ("kube-dns", "openshift-dns", "openshift-ingress", "kube-apiserver", "'ignition-server'"):
        assert peer in text
    outside = virt_launcher_policy(PolicyInput("ns", "demo-x", [], central=False))
    assert "kube-apiserver" not in str(outside)
    assert outside["spec"]["egress"][0]["to"][0] == {"ipBlock": {"cidr": "0.0.0.0/0"}}


def test_the_api_of_the_infra_cluster_is_hidden_and_its_machine_is_not() -> None:
    policy = virt_launcher_policy(PolicyInput("ns", "demo-x", ["10.0.0.0/8"], api_endpoints=[("192.0.2.2", 6443)]))
    first, beside = policy["spec"]["egress"]
    assert first["to"][0]["ipBlock"]["except"] == ["10.0.0.0/8", "192.0.2.2/32"]
    assert beside["to"] == [{"ipBlock": {"cidr": "192.0.2.2/32"}}]
    assert {"protocol": "TCP", "port": 1, "endPort": 6442} in beside["ports"]
    assert {"protocol": "TCP", "port": 6444, "endPort": 65535} in beside["ports"]


def node(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "vm-1", "labels": {}, **more.pop("metadata", {})}, "spec": more}


def applied(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    metadata, spec = patch.get("metadata", {}), patch.get("spec", {})
    labels = {**(base["metadata"].get("labels") or {}), **metadata.get("labels", {})}
    annotations = {**(base["metadata"].get("annotations") or {}), **metadata.get("annotations", {})}
    kept = {key: value for key, value in labels.items() if value is not None}
    return {
        "metadata": {**base["metadata"], "labels": kept, "annotations": annotations},
        "spec": {**base["spec"], **spec},
    }


def test_a_node_follows_its_pool_and_then_rests() -> None:
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    patch = node_patch(node(), "np", {"zone": "x"}, [taint])
    assert patch is not None
    assert patch["metadata"]["labels"] == {
        "node-role.kubernetes.io/worker": "",
        "hypershift.openshift.io/nodePool": "np",
        "zone": "x",
    }
    assert patch["spec"] == {"taints": [taint], "providerID": "kubevirt://vm-1"}
    followed = applied(node(), patch)
    assert node_patch(followed, "np", {"zone": "x"}, [taint]) is None


def test_labels_and_taints_taken_off_the_pool_leave_the_node() -> None:
    foreign = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "t"}
    taint = {"key": "a", "effect": "NoSchedule"}
    first = node_patch(node(taints=[foreign]), "np", {"zone": "x"}, [taint])
    assert first is not None
    followed = applied(node(taints=[foreign]), first)
    second = node_patch(followed, "np", {}, [])
    assert second is not None
    assert second["metadata"]["labels"] == {"zone": None}
    assert second["spec"]["taints"] == [foreign]
    assert node_patch(applied(followed, second), "np", {}, []) is None


def test_a_damaged_record_is_rewritten() -> None:
    odd = node(metadata={"annotations": {ANNOTATION_SYNCED: "true"}}, providerID="kubevirt://vm-1")
    patch = node_patch(odd, "np", {}, [])
    assert patch is not None and "annotations" in patch["metadata"]


def test_external_credentials() -> None:
    assert credentials({"kubevirt": {"credentials": {"infraNamespace": "x"}}}) == {"infraNamespace": "x"}
    assert credentials({"kubevirt": {}}) is None
