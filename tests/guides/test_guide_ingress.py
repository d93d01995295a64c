"""A base domain of one's own: the cluster, and a load balancer in front of its machines."""

from __future__ import annotations

import urllib.request
from functools import partial

import pytest
from tests.support.e2e.hosted_tools import Guest
from tests.support.eventually import eventually_sync
from tests.support.guides import documents
from tests.support.guides.clusters import SIZE, Hosted
from tests.support.guides.shell import Shell

pytestmark = pytest.mark.timeout(3600)
NAMESPACE, SERVICE = "kube-system", "router-nodeport-default"


def test_a_cluster_with_a_base_domain(terminal: Shell, clusters_namespace: str) -> None:
    made = Hosted("domain", clusters_namespace, 0)
    try:
        terminal.run(
            f"hcp create cluster kubevirt {made.words} --node-pool-replicas 0 --pull-secret $PULL_SECRET {SIZE}"
            " --base-domain hypershift.lab"
        )

        def half_way() -> bool:
            line = f"oc get --namespace {made.namespace} hostedclusters {made.name} --no-headers"
            return terminal.run(line).split()[1:4] == [f"{made.name}-admin-kubeconfig", "Partial", "True"]

        eventually_sync(half_way, "the control plane is available, the roll-out is partial", 600)
        terminal.run(f"hcp create kubeconfig {made.words} > {made.name}-kubeconfig")
        assert "kube-system" in terminal.run(f"oc --kubeconfig {made.name}-kubeconfig get namespaces")
    finally:
        terminal.run(f"hcp destroy cluster kubevirt {made.words} --cluster-grace-period 15m", seconds=1000)


def test_a_load_balancer_leads_to_node_ports_of_the_machines(terminal: Shell, example: Hosted, guest: Guest) -> None:
    """A Kubernetes release has no ingress controller; the health page of the guest's DNS stands for it.

    It runs on the nodes already, so nothing has to be pulled.
    """
    ports = [{"name": name, "port": port, "targetPort": 8080} for name, port in (("http", 80), ("https", 443))]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "NodePort", "selector": {"k8s-app": "kube-dns"}, "ports": ports},
    }
    guest.kubectl("apply", "-f", "-", stdin=documents.text(service))
    try:
        terminal.run(f"hcp create kubeconfig {example.words} > kubeconfig")
        found = {}
        for name in ("http", "https"):
            query = f'{{.spec.ports[?(@.name=="{name}")].nodePort}}'
            line = f"oc --kubeconfig kubeconfig get services -n {NAMESPACE} {SERVICE} -o jsonpath='{query}'"
            found[name] = int(terminal.run(line))
        balancer = documents.apps_service(example.name, example.control_plane, found["https"], found["http"])
        terminal.run("oc apply -f -", stdin=documents.text(balancer))
        query = "{.status.loadBalancer.ingress[0].ip}"
        line = f"oc -n {example.control_plane} get service {example.name}-apps -o jsonpath='{query}'"
        address = eventually_sync(lambda: terminal.run(line), "an address of the load balancer", 120)

        def answered(port: int) -> bool:
            with urllib.request.urlopen(f"http://{address}:{port}/health", timeout=20) as answer:
                return bool(answer.read() == b"OK")

        for port in (80, 443):
            eventually_sync(partial(answered, port), f"an answer from inside through port {port}", 300)
    finally:
        terminal.run(f"oc -n {example.control_plane} delete service {example.name}-apps --ignore-not-found")
        guest.kubectl("delete", "service", "-n", NAMESPACE, SERVICE)
