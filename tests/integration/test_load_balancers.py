"""Load balancers of guests' Services on a real API server: protocols, ports, health checks, and whose annotations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.eventually import eventually
from tests.support.machines import instance, launcher, machine, run_launcher
from tests.support.node_pools import Object, clean, hosted_cluster, node_pool, prepare, running_operator

from hcp.api.names import ANNOTATION_LOAD_BALANCERS
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kubevirt.loadbalancer import LABEL_SERVICE, PORTS_ERROR


@pytest.fixture
async def home(client: Client, namespace: str, api_server: Path) -> AsyncIterator[str]:
    """A hosted cluster with a pool and one running VM; guest and infra are one server."""
    await prepare(client)
    await hosted_cluster(client, namespace, api_server)
    await client.create(node_pool(namespace))
    await client.create(machine(namespace))
    made = await client.create(instance(namespace, "10.9.0.5"))
    await client.create(launcher(made))
    await run_launcher(client, made, "10.9.0.5")
    async with running_operator(api_server):
        yield namespace
    await clean(client, namespace)


async def _make(client: Client, ns: str, name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": ns, "annotations": annotations or {}}
    whole = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80}], **spec}
    return await client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": whole})


async def _mirrored(client: Client, ns: str, name: str) -> Object | None:
    found = await client.list(r.SERVICES, f"{ns}-demo", f"{LABEL_SERVICE}={name}")
    return found[0] if found else None


async def _end(client: Client, ns: str, *names: str) -> None:
    for name in names:
        await client.delete(r.SERVICES, name, ns)

        async def gone(name: str = name) -> bool:
            return await client.get_or_none(r.SERVICES, name, ns) is None

        await eventually(gone, f"{name} is gone")


async def test_the_owners_annotations_reach_every_load_balancer_and_a_tenants_none(client: Client, home: str) -> None:
    await _make(client, home, "web", {"metallb.io/loadBalancerIPs": "192.0.2.1"})
    infra = await eventually(lambda: _mirrored(client, home, "web"), "a load balancer")
    assert not infra["metadata"].get("annotations")

    async def ask(value: str | None) -> None:
        body = {"metadata": {"annotations": {ANNOTATION_LOAD_BALANCERS: value}}}
        await client.patch(r.HOSTEDCLUSTERS, "demo", home, body)

    async def has(*names: str, **wanted: str) -> bool:
        found = [await _mirrored(client, home, name) for name in names]
        keys = {key.replace("_", "/", 1): value for key, value in wanted.items()}
        assert all((one or {"metadata": {}})["metadata"].get("annotations", {}) == keys for one in found), found
        return True

    await ask(json.dumps({"lb.test/pool": "tenants", "lb.test/share": "one"}))
    await eventually(lambda: has("web", **{"lb.test_pool": "tenants", "lb.test_share": "one"}), "the owner's")
    await _make(client, home, "mail")
    await eventually(lambda: has("web", "mail", **{"lb.test_pool": "tenants", "lb.test_share": "one"}), "on all")
    await ask(json.dumps({"lb.test/pool": "others"}))
    await eventually(lambda: has("web", "mail", **{"lb.test_pool": "others"}), "one is changed, one is gone")
    await ask(None)
    await eventually(lambda: has("web", "mail"), "none")
    await _end(client, home, "web", "mail")


async def test_several_protocols_on_one_port(client: Client, home: str) -> None:
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    service = await _make(client, home, "dns", ports=ports)
    given = {(port["protocol"], port["nodePort"]) for port in service["spec"]["ports"]}

    async def leads(wanted: set[tuple[str, int]]) -> bool:
        infra = await _mirrored(client, home, "dns")
        assert infra and {(p["protocol"], p["targetPort"]) for p in infra["spec"]["ports"]} == wanted, infra
        [item] = await client.list(r.ENDPOINTSLICES, f"{home}-demo")
        return {(port["protocol"], port["port"]) for port in item["ports"]} == wanted

    await eventually(lambda: leads(given), "both protocols")
    # One of the two goes, and comes back on another port.
    live = await client.get(r.SERVICES, "dns", home)
    only = [port for port in live["spec"]["ports"] if port["protocol"] == "UDP"]
    await client.patch(r.SERVICES, "dns", home, {"spec": {"ports": only}})
    await eventually(lambda: leads({("UDP", only[0]["nodePort"])}), "one protocol")
    both = [*only, {"name": "dns-tcp", "port": 5353, "protocol": "TCP"}]
    changed = await client.patch(r.SERVICES, "dns", home, {"spec": {"ports": both}})
    given = {(port["protocol"], port["nodePort"]) for port in changed["spec"]["ports"]}
    await eventually(lambda: leads(given), "both again")

    # What the infra cluster says about ports is told to the tenant, in short.
    infra = await _mirrored(client, home, "dns")
    assert infra
    error = {"port": 53, "protocol": "UDP", "error": "example.com/NoUDP"}
    stamp = "2026-01-01T00:00:00Z"
    condition = {"type": PORTS_ERROR, "status": "True", "reason": "LoadBalancerMixedProtocolNotSupported"}
    status = {
        "loadBalancer": {"ingress": [{"ip": "192.0.2.9", "ipMode": "VIP", "ports": [error]}]},
        "conditions": [{**condition, "message": "host-7 said no", "lastTransitionTime": stamp}],
    }
    await client.patch(r.SERVICES, infra["metadata"]["name"], f"{home}-demo", {"status": status}, subresource="status")

    async def told() -> bool:
        found = (await client.get(r.SERVICES, "dns", home))["status"]
        assert found["loadBalancer"]["ingress"][0]["ports"] == [error]
        [said] = found["conditions"]
        return said["reason"] == condition["reason"] and "host-7" not in json.dumps(found)

    await eventually(told, "the tenant is told")
    await _end(client, home, "dns")


async def test_health_checks_have_ports_of_the_infra_cluster(client: Client, home: str) -> None:
    mine = await _make(client, home, "web", externalTrafficPolicy="Local")
    port = mine["spec"]["healthCheckNodePort"]

    async def checked() -> int:
        infra = await _mirrored(client, home, "web")
        assert infra and infra["spec"]["externalTrafficPolicy"] == "Local"
        return int(infra["spec"]["healthCheckNodePort"])

    assert await eventually(checked, "a health check") not in (0, port)
    assert await client.list(r.ENDPOINTSLICES, f"{home}-demo") == [], "no node has a pod of it"
    await client.patch(r.SERVICES, "web", home, {"spec": {"externalTrafficPolicy": "Cluster"}})

    async def everywhere() -> bool:
        infra = await _mirrored(client, home, "web")
        assert infra and infra["spec"]["externalTrafficPolicy"] == "Cluster"
        return "healthCheckNodePort" not in infra["spec"] and bool(await client.list(r.ENDPOINTSLICES, f"{home}-demo"))

    await eventually(everywhere, "all machines take traffic")
    await _end(client, home, "web")


async def test_without_node_ports_the_tenant_is_told_and_nothing_is_led_astray(client: Client, home: str) -> None:
    await _make(client, home, "web", allocateLoadBalancerNodePorts=False)

    async def told() -> bool:
        [said] = (await client.get(r.SERVICES, "web", home))["status"]["conditions"]
        return said["type"] == PORTS_ERROR and "allocateLoadBalancerNodePorts" in said["message"]

    await eventually(told, "the Service says why")
    assert await _mirrored(client, home, "web") is None
    before = await client.get(r.SERVICES, "web", home)
    # A node port that is named is enough, and the infra cluster gives none of its own.
    # Of those that no server gives by itself while it has others.
    ports = [{"port": 80, "nodePort": 30042}]
    await client.patch(r.SERVICES, "web", home, {"spec": {"ports": ports}})
    infra = await eventually(lambda: _mirrored(client, home, "web"), "a load balancer")
    assert infra["spec"]["ports"][0]["targetPort"] == 30042
    assert infra["spec"]["allocateLoadBalancerNodePorts"] is False and "nodePort" not in infra["spec"]["ports"][0]

    async def well() -> bool:
        return not (await client.get(r.SERVICES, "web", home))["status"].get("conditions")

    await eventually(well, "nothing is wrong any more")
    await client.patch(r.SERVICES, "web", home, {"spec": {"ports": before["spec"]["ports"]}})
    await eventually(told, "the Service says why again")

    async def gone() -> bool:
        return await _mirrored(client, home, "web") is None

    await eventually(gone, "no load balancer leads to what may be another's port")
    await _end(client, home, "web")


async def test_local_traffic_is_led_where_a_ready_pod_is_for_every_protocol(client: Client, home: str) -> None:
    ports = [{"name": "quic", "port": 443, "protocol": "UDP"}, {"name": "https", "port": 443, "protocol": "TCP"}]
    service = await _make(client, home, "web", externalTrafficPolicy="Local", ports=ports)
    given = {(port["protocol"], port["nodePort"]) for port in service["spec"]["ports"]}
    infra = await eventually(lambda: _mirrored(client, home, "web"), "a load balancer")
    health = infra["spec"]["healthCheckNodePort"]

    async def pod(node: str, *, ready: bool) -> None:
        """What the guest's own controllers say about a pod of the Service."""
        endpoint = {"addresses": ["10.1.0.1"], "nodeName": node, "conditions": {"ready": ready}}
        labels = {"kubernetes.io/service-name": "web"}
        whole = {"metadata": {"name": "web-1", "namespace": home, "labels": labels}, "addressType": "IPv4"}
        kind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"}
        await client.apply({**kind, **whole, "endpoints": [endpoint], "ports": []})

    async def led(*wanted: str) -> bool:
        slices = await client.list(r.ENDPOINTSLICES, f"{home}-demo")
        found = [address for item in slices for end in item["endpoints"] for address in end["addresses"]]
        assert found == list(wanted), found
        return all({(port["protocol"], port["port"]) for port in item["ports"]} == given for item in slices)

    await pod(f"vm-{home}", ready=True)
    await eventually(lambda: led("10.9.0.5"), "the machine with the pod")
    await pod(f"vm-{home}", ready=False)
    await eventually(led, "no machine")
    await pod(f"vm-{home}", ready=True)
    await eventually(lambda: led("10.9.0.5"), "the machine again")
    await pod("another", ready=True)
    await eventually(led, "none of ours")
    after = await _mirrored(client, home, "web")
    assert after and after["spec"]["healthCheckNodePort"] == health, "a load balancer outside goes on asking there"
    await client.delete(r.ENDPOINTSLICES, "web-1", home)
    await _end(client, home, "web")


async def test_what_the_infra_clusters_load_balancer_writes_is_left_alone(client: Client, home: str) -> None:
    """MetalLB notes on the Service which pool its address is from."""
    note, share = "metallb.io/ip-allocated-from-pool", "metallb.io/allow-shared-ip"

    async def ask(value: dict[str, str]) -> None:
        body = {"metadata": {"annotations": {ANNOTATION_LOAD_BALANCERS: json.dumps(value)}}}
        await client.patch(r.HOSTEDCLUSTERS, "demo", home, body)

    async def noted(name: str, **wanted: str) -> Object | None:
        found = await _mirrored(client, home, name)
        assert found and found["metadata"].get("annotations", {}) == wanted, found
        return found

    await ask({share: "demo"})
    await _make(client, home, "web")
    infra = await eventually(lambda: noted("web", **{share: "demo"}), "the owner's annotation")
    infra["metadata"]["annotations"][note] = "tenants"
    infra["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.9", "ipMode": "VIP"}]}}
    written = await client.replace(infra, subresource="status")

    async def told() -> bool:
        status = (await client.get(r.SERVICES, "web", home))["status"]
        return bool(status["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.9")

    await eventually(told, "the address")
    # What comes later has been looked at later.
    await _make(client, home, "mail")
    await eventually(lambda: noted("mail", **{share: "demo"}), "the second load balancer")
    live = await noted("web", **{share: "demo", note: "tenants"})
    assert live and live["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"], "nobody wrote again"
    await ask({"metallb.io/address-pool": "others"})
    wanted = {"metallb.io/address-pool": "others", note: "tenants"}
    await eventually(lambda: noted("web", **wanted), "the owner's change, and what is not the owner's")
    await client.patch(r.HOSTEDCLUSTERS, "demo", home, {"metadata": {"annotations": {ANNOTATION_LOAD_BALANCERS: None}}})
    await _end(client, home, "web", "mail")
