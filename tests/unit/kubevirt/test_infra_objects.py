import json
from typing import Any

from hcp.api.names import MARK_LABELS_SYNCED
from hcp.guest.nodes import node_patch
from hcp.kubevirt import launchers
from hcp.kubevirt.infra import credentials
from hcp.kubevirt.loadbalancer import endpoint_slices, infra_name, infra_service, serving, unserved, wanted
from hcp.kubevirt.network_policy import PolicyInput, virt_launcher_policy

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


def instance(name: str, phase: str = "Running") -> dict[str, Any]:
    """A VM that reports an address which is not its own."""
    reported = {"ipAddress": "192.0.2.66", "ipAddresses": ["192.0.2.66"]}
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {
            "domain": {"devices": {"interfaces": [{"name": "default", "bridge": {}}]}},
            "networks": [{"name": "default", "pod": {}}],
        },
        "status": {"phase": phase, "nodeName": "node-a", "interfaces": [reported]},
    }


def pod(name: str, *addresses: str, **more: Any) -> dict[str, Any]:
    """The pod KubeVirt made for it."""
    owner = {"kind": "VirtualMachineInstance", "name": name, "uid": f"uid-{name}"}
    made: dict[str, dict[str, Any]] = {
        "metadata": {"name": f"virt-launcher-{name}", "namespace": "ns", "ownerReferences": [owner]},
        "spec": {"nodeName": "node-a"},
        "status": {"phase": "Running", "podIPs": [{"ip": address} for address in addresses]},
    }
    return {key: {**value, **more.get(key, {})} for key, value in made.items()}


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


def test_annotations_are_the_owners_and_never_the_tenants() -> None:
    steering = {"metadata": {**SERVICE["metadata"], "annotations": {"metallb.io/loadBalancerIPs": "192.0.2.1"}}}
    assert "annotations" not in infra_service({**SERVICE, **steering}, "ns", "demo-x")["metadata"]
    owner = {"metallb.io/address-pool": "tenants"}
    assert infra_service({**SERVICE, **steering}, "ns", "demo-x", annotations=owner)["metadata"]["annotations"] == owner


def test_no_port_or_address_of_the_infra_cluster_is_a_tenants_choice() -> None:
    asked = {"healthCheckNodePort": 31999, "loadBalancerIP": "192.0.2.1", "externalIPs": ["192.0.2.2"]}
    made = infra_service({**SERVICE, "spec": {**SERVICE["spec"], **asked}}, "ns", "demo-x")["spec"]
    assert not set(asked) & set(made)
    assert not any("nodePort" in port for port in made["ports"])


def test_one_port_may_have_several_protocols() -> None:
    dns = [
        {"name": "dns", "port": 53, "nodePort": 30053, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "nodePort": 30054, "protocol": "TCP"},
    ]
    service = {**SERVICE, "spec": {"type": "LoadBalancer", "ports": dns}}
    infra = infra_service(service, "ns", "demo-x")
    assert {(port["protocol"], port["targetPort"]) for port in infra["spec"]["ports"]} == {
        ("UDP", 30053),
        ("TCP", 30054),
    }
    infra["metadata"]["uid"] = "u"
    [item] = endpoint_slices(service, infra, [instance("a")], [pod("a", "10.0.0.1")])
    assert {(port["name"], port["protocol"], port["port"]) for port in item["ports"]} == {
        ("dns", "UDP", 30053),
        ("dns-tcp", "TCP", 30054),
    }


def test_a_port_without_a_node_port_is_refused_in_words() -> None:
    assert unserved(SERVICE) == ""
    ports = [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}]
    spec = {**SERVICE["spec"], "allocateLoadBalancerNodePorts": False, "ports": ports}
    assert unserved({**SERVICE, "spec": spec}).startswith("Port 53/UDP has no node port")
    named = {**spec, "ports": ports[:1]}
    assert unserved({**SERVICE, "spec": named}) == "", "one that is named is as good as one that is given"
    assert infra_service({**SERVICE, "spec": named}, "ns", "x")["spec"]["allocateLoadBalancerNodePorts"] is False


def test_slices_hold_only_what_the_infra_cluster_gave() -> None:
    infra = {**infra_service(SERVICE, "ns", "demo-x")}
    infra["metadata"]["uid"] = "u"
    pods = [pod("b", "10.0.0.2"), pod("a", "10.0.0.1", "fd00::1")]
    slices = endpoint_slices(SERVICE, infra, [instance("b"), instance("a")], pods)
    assert [item["endpoints"][0]["addresses"] for item in slices] == [["10.0.0.1"], ["10.0.0.2"]]
    assert slices[0]["ports"] == [{"name": "http", "protocol": "TCP", "port": 30080}]
    assert slices[0]["endpoints"][0]["nodeName"] == "node-a"
    infra["spec"]["ipFamilies"] = ["IPv4", "IPv6"]
    names = [s["metadata"]["name"] for s in endpoint_slices(SERVICE, infra, [instance("a")], pods)]
    assert names == [f"{infra_name(SERVICE)}-a-ipv4", f"{infra_name(SERVICE)}-a-ipv6"]


def test_local_policy_limits_the_nodes() -> None:
    infra = infra_service(SERVICE, "ns", "demo-x")
    both, pods = [instance("a"), instance("b")], [pod("a", "10.0.0.1"), pod("b", "10.0.0.2")]
    assert len(endpoint_slices(SERVICE, infra, both, pods, {"b"})) == 1
    assert endpoint_slices(SERVICE, infra, both, pods, set()) == []


def test_machines_that_do_not_run_are_not_ready() -> None:
    infra = infra_service(SERVICE, "ns", "demo-x")
    [item] = endpoint_slices(SERVICE, infra, [instance("a", phase="Scheduling")], [pod("a", "10.0.0.1")])
    assert item["endpoints"][0]["conditions"]["ready"] is False
    assert endpoint_slices(SERVICE, infra, [instance("a")], []) == []
    going = instance("a")
    going["metadata"]["deletionTimestamp"] = "now"
    assert not serving(going)


def test_addresses_and_wishes() -> None:
    assert launchers.addresses(instance("a"), pod("a", "fe80::1", "10.0.0.1")) == {"IPv4": "10.0.0.1"}
    assert launchers.addresses(instance("a"), pod("a", "127.0.0.1", "x", "0.0.0.0", "224.0.0.1")) == {}
    assert launchers.addresses(instance("a"), None) == {}
    assert wanted(SERVICE)
    assert not wanted({**SERVICE, "spec": {"type": "ClusterIP"}})
    assert not wanted({**SERVICE, "metadata": {**SERVICE["metadata"], "deletionTimestamp": "now"}})


def test_a_pod_counts_only_for_the_machine_it_was_made_for() -> None:
    other = {"metadata": {"ownerReferences": [{"kind": "VirtualMachineInstance", "name": "a", "uid": "uid-older"}]}}
    foreign = {"metadata": {"ownerReferences": [{"kind": "ReplicaSet", "name": "a", "uid": "uid-a"}]}}
    ended = {"status": {"phase": "Succeeded"}}
    target = {"spec": {"nodeName": "node-b"}}  # where the machine is going to in a migration
    for more in (other, foreign, ended, target):
        assert launchers.launcher(instance("a"), [pod("a", "10.0.0.1", **more)]) is None
    assert launchers.launcher(instance("a"), [pod("b", "10.0.0.2"), pod("a", "10.0.0.1")]) == pod("a", "10.0.0.1")
    assert launchers.launcher({"metadata": {}}, [pod("a")]) is None


def test_other_networks_are_asked_of_multus() -> None:
    machine = instance("a")
    machine["spec"]["networks"] = [{"name": "default", "multus": {"networkName": "ns/wire"}}]
    status = [{"name": "cluster", "default": True, "ips": ["10.0.0.1"]}, {"name": "ns/wire", "ips": ["198.51.100.7"]}]
    attached = pod("a", "10.0.0.1")
    attached["metadata"]["annotations"] = {launchers.NETWORK_STATUS: json.dumps(status)}
    assert launchers.addresses(machine, launchers.slim(attached)) == {"IPv4": "198.51.100.7"}
    machine["spec"]["networks"][0]["multus"]["networkName"] = "wire"
    assert launchers.addresses(machine, attached) == {"IPv4": "198.51.100.7"}
    for odd in ("{}", "[3]", "no json", json.dumps([{"name": "ns/wire"}])):
        attached["metadata"]["annotations"] = {launchers.NETWORK_STATUS: odd}
        assert launchers.addresses(machine, attached) == {}


def test_without_the_right_to_read_pods_the_infra_cluster_finds_them_itself() -> None:
    spec = infra_service(SERVICE, "ns", "demo-x", selecting=True)["spec"]
    assert spec["selector"] == {"hypershift.openshift.io/infra-id": "demo-x", "kubevirt.io": "virt-launcher"}


def test_the_policy_of_virt_launchers() -> None:
    given = PolicyInput("ns", "demo-x", ["10.128.0.0/14", "172.30.0.0/16", "fd01::/48"], [("192.0.2.1", 30080)])
    policy = virt_launcher_policy(given)
    own = {"hypershift.openshift.io/infra-id": "demo-x", "kubevirt.io": "virt-launcher"}
    assert policy["spec"]["podSelector"] == {"matchLabels": own}
    first, *dns, node_port = policy["spec"]["egress"]
    hidden = ["10.128.0.0/14", "169.254.0.0/16", "172.30.0.0/16"]
    assert first["to"][0] == {"ipBlock": {"cidr": "0.0.0.0/0", "except": hidden}}
    assert first["to"][1] == {"ipBlock": {"cidr": "::/0", "except": ["fd01::/48", "fe80::/10"]}}
    only = [{"protocol": "TCP", "port": 30080}]
    assert node_port == {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": only}
    assert all({port["port"] for port in rule["ports"]} <= {53, 1053, 5353} for rule in dns)
    text = str(policy["spec"]["egress"])
    for peer in ("kube-dns", "openshift-dns", "openshift-ingress", "kube-apiserver", "'ignition-server'"):
        assert peer in text
    outside = virt_launcher_policy(PolicyInput("ns", "demo-x", [], central=False))
    assert "kube-apiserver" not in str(outside)
    assert outside["spec"]["egress"][0]["to"][0] == {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}}


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
    odd = node(metadata={"annotations": {MARK_LABELS_SYNCED: "true"}}, providerID="kubevirt://vm-1")
    patch = node_patch(odd, "np", {}, [])
    assert patch is not None and "annotations" in patch["metadata"]


def test_external_credentials() -> None:
    assert credentials({"kubevirt": {"credentials": {"infraNamespace": "x"}}}) == {"infraNamespace": "x"}
    assert credentials({"kubevirt": {}}) is None


def test_an_address_follows_where_the_network_of_pods_lets_it_or_is_not_used() -> None:
    machine: dict[str, Any] = {
        "metadata": {"name": "vm"},
        "spec": {
            "domain": {"devices": {"interfaces": [{"name": "default", "bridge": {}}]}},
            "networks": [{"name": "default", "pod": {}}],
        },
    }
    plain = launchers.slim({"metadata": {"annotations": {"a": "b"}}})
    following = launchers.slim({"metadata": {"annotations": {launchers.FOLLOWING: "{...}"}}})
    assert not launchers.address_follows(machine, None)
    assert not launchers.address_follows(machine, plain)
    assert launchers.address_follows(machine, following)
    machine["spec"]["networks"] = [{"name": "default", "multus": {"networkName": "a/b"}}]
    assert launchers.address_follows(machine, plain)
    machine["spec"]["domain"] = {"devices": {"interfaces": [{"name": "default", "masquerade": {}}]}}
    assert launchers.address_follows(machine, plain)
