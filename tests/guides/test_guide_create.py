"""A hosted cluster from nothing to nodes, step by step as the guides for bare metal and for disconnected sites go."""

from __future__ import annotations

import pytest
from tests.support.e2e.hosted_tools import Guest
from tests.support.eventually import eventually_sync
from tests.support.guides.clusters import Hosted
from tests.support.guides.shell import Shell

pytestmark = pytest.mark.timeout(3600)


def rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_the_operator_runs(terminal: Shell) -> None:
    assert terminal.run('oc get pods -n hypershift | grep "operator.*Running"')


def test_control_plane_pods_run(terminal: Shell, example: Hosted) -> None:
    def running() -> bool:
        found = rows(terminal.run(rf"oc get pod -n {example.control_plane} | grep 'kube-api\|etcd'"))
        assert {row[0].split("-")[0] for row in found} == {"etcd", "kube"}, found
        return all(row[2] == "Running" for row in found)

    eventually_sync(running, "etcd and the API server run", 600)
    assert "etcd-0" in terminal.run(f"oc -n {example.control_plane} get pods")


def test_machines_become_ready(terminal: Shell, example: Hosted) -> None:
    def made() -> bool:
        return len(rows(terminal.run(f"oc get vm -n {example.control_plane} --no-headers"))) == example.workers

    eventually_sync(made, "the machines exist", 900)
    terminal.run(
        f"oc wait --for=condition=Ready --namespace {example.control_plane} vm --all --timeout=1500s", seconds=1600
    )
    header, *found = rows(terminal.run(f"oc get vm -n {example.control_plane}"))
    assert header == ["NAME", "AGE", "STATUS", "READY"]
    assert [row[-2:] for row in found] == [["Running", "True"]] * example.workers
    launchers = rows(terminal.run(f"oc get pod -n {example.control_plane} | grep 'virt-launcher'"))
    assert len([row for row in launchers if row[2] == "Running"]) == example.workers


def test_nodes_join_as_workers(terminal: Shell, example: Hosted, guest: Guest) -> None:
    terminal.run(f'hypershift create kubeconfig --namespace {example.namespace} --name="{example.name}" > kubeconfig')
    machines = {row[0] for row in rows(terminal.run(f"oc get vm -n {example.control_plane} --no-headers"))}
    nodes = {row[0]: row for row in rows(terminal.run("oc --kubeconfig kubeconfig get nodes --no-headers"))}
    assert set(nodes) == machines
    assert all(row[1:3] == ["Ready", "worker"] for row in nodes.values()), nodes


def test_the_list_shows_a_finished_cluster(terminal: Shell, example: Hosted, guest: Guest) -> None:
    def finished() -> bool:
        row = terminal.run(f"oc get --namespace {example.namespace} hostedclusters {example.name} --no-headers")
        return row.split(maxsplit=6)[2:] == [
            f"{example.name}-admin-kubeconfig",
            "Completed",
            "True",
            "False",
            "The hosted control plane is available\n",
        ]

    eventually_sync(finished, "the roll-out is complete", 600)
    assert any(row[:2] == [example.namespace, example.name] for row in rows(terminal.run("oc get hc -A")))


def test_everything_can_be_watched(terminal: Shell, example: Hosted) -> None:
    for line in (
        "oc get pod -n hypershift",
        f"oc get pod -n {example.control_plane}",
        "oc get hostedcluster -A",
        "oc get nodepool -A",
    ):
        assert len(terminal.run(line).splitlines()) > 1, line


def test_the_inside_can_be_watched(terminal: Shell, example: Hosted, guest: Guest) -> None:
    terminal.run(
        f"oc get secret -n {example.control_plane} admin-kubeconfig"
        " -o jsonpath='{.data.kubeconfig}' | base64 -d > hc_admin_kubeconfig.yaml"
    )

    def seen() -> bool:
        printed = terminal.run(
            "export KUBECONFIG=hc_admin_kubeconfig.yaml; oc get clusterversion,nodes,co --no-headers"
        )
        found = {row[0]: row[1:] for row in rows(printed) if row}
        nodes = [name for name in found if name.startswith("node/")]
        operators = {name.partition("/")[2]: row for name, row in found.items() if name.startswith("clusteroperator")}
        assert len(nodes) == example.workers
        assert {"dns", "etcd", "kube-apiserver", "network"} <= operators.keys()
        told = found["clusterversion.config.openshift.io/version"]
        return told[1:3] == ["True", "False"] and all(
            row[1:4] == ["True", "False", "False"] for row in operators.values()
        )

    eventually_sync(seen, "the version is reached and every part is well", 600)


def test_the_cluster_has_a_network_of_its_own(terminal: Shell, example: Hosted, guest: Guest) -> None:
    terminal.run(f"hcp create kubeconfig {example.words} > kubeconfig")
    found = rows(terminal.run("oc --kubeconfig kubeconfig get pod -A | grep 'flannel\\|coredns\\|konnectivity'"))
    for part in ("flannel", "coredns", "konnectivity-agent"):
        assert [row for row in found if part in row[1] and row[3] == "Running"], (part, found)
