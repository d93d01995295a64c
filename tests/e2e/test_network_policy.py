"""NetworkPolicies inside a hosted cluster, with packets between pods of two nodes.

Who may speak to whom is asked of every client pod, on the same node and on the other, before and after each policy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from tests.support.e2e.hosted_tools import Guest, with_nodes
from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync
from tests.support.policy_matrix import CLIENTS, OPEN, SERVERS, SHOP, VISITORS, Matrix, cases, namespaces, targets

from hcp.guest import network_policy

NAME = "policies"
# With KEEP=1 any hosted cluster with two nodes will do.
CLUSTER = os.environ.get("CLUSTER", NAME)
_SERVE = (
    "mkdir /tmp/w && echo hello >/tmp/w/hello && busybox httpd -p 8081 -h /tmp/w "
    "&& exec busybox httpd -f -p 8080 -h /tmp/w"
)
_WITHIN = 600.0
# The first policy brings kube-router: its image is pulled and its pods start on both nodes.
_FIRST = 1200.0
# kube-router's chains and sets. Kubelets and kube-proxy have others that begin with KUBE-, and keep them.
_OURS = re.compile(r"KUBE-(ROUTER|POD-FW|NWPLCY|SRC|DST)-")

pytestmark = pytest.mark.timeout(5400)


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_nodes(2, NAME, CLUSTER, tmp_path_factory.mktemp("policies")) as made:
        yield made


@pytest.fixture(scope="module")
def guest(management: Cluster) -> Guest:
    made = Guest.of(management, CLUSTER)
    nodes = sorted(node["metadata"]["name"] for node in made.get("nodes")["items"])
    servers = [_pod(name, ns, nodes[where], made.image(), _SERVE) for name, (ns, where) in SERVERS.items()]
    clients = [
        _pod(name, ns, nodes[where], made.image(), "exec sleep 2147483647") for name, (ns, where) in CLIENTS.items()
    ]
    made.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([*namespaces(), *servers, *clients]))
    for ns in (SHOP, VISITORS):
        made.kubectl("wait", "-n", ns, "--for=condition=Ready", "pod", "--all", "--timeout=900s", seconds=930)
    return made


def _pod(name: str, ns: str, node: str, image: str, line: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": ns, "labels": {"app": name}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "one", "image": image, "command": ["sh", "-c", line]}],
        },
    }


def addresses(guest: Guest) -> dict[str, str]:
    pods = guest.get("pods", "-A", "-l", "app")["items"]
    return {
        pod["metadata"]["name"]: pod["status"]["podIP"]
        for pod in pods
        if pod["metadata"]["name"] in (*SERVERS, *CLIENTS)
    }


def reached(guest: Guest, known: dict[str, str]) -> Matrix:
    """What each client gets an answer from: one call a client, all clients at once."""
    line = "; ".join(
        f"busybox timeout 10 wget -q -O /dev/null http://{where}/hello && echo {name}"
        for name, where in targets(known).items()
    )

    def one(client: str) -> set[str]:
        ns, _ = CLIENTS[client]
        return set(guest.kubectl("exec", "-n", ns, client, "--", "sh", "-c", f"({line}) 2>/dev/null; true").split())

    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        return dict(zip(CLIENTS, pool.map(one, CLIENTS), strict=True))


def test_nothing_runs_before_the_first_policy(guest: Guest) -> None:
    assert network_policy.NAME not in guest.kubectl("get", "daemonsets", "-n", "kube-system")
    known = addresses(guest)
    eventually_sync(lambda: reached(guest, known) == OPEN, "all pods speak with each other", _WITHIN)


def test_each_policy_leaves_exactly_what_it_says(guest: Guest) -> None:
    known = addresses(guest)
    for number, (name, (policies, wanted)) in enumerate(cases(known).items()):
        guest.kubectl("delete", "networkpolicies", "-A", "--all")
        guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(policies))
        seen: list[Matrix] = []

        def holds(wanted: Matrix = wanted, seen: list[Matrix] = seen) -> bool:
            seen.append(reached(guest, known))
            return seen[-1] == wanted

        try:
            eventually_sync(holds, name, _WITHIN if number else _FIRST)
        except AssertionError as error:
            raise AssertionError(f"{name}: wanted {wanted}, seen last {seen[-1:]}") from error


def test_with_the_last_policy_everything_goes(guest: Guest) -> None:
    guest.kubectl("delete", "networkpolicies", "-A", "--all")
    eventually_sync(
        lambda: network_policy.NAME not in guest.kubectl("get", "daemonsets", "-n", "kube-system"),
        "the DaemonSet is gone",
        900,
    )
    known = addresses(guest)
    eventually_sync(lambda: reached(guest, known) == OPEN, "all pods speak with each other", _WITHIN)
    for node in guest.ready_nodes():
        assert not _OURS.findall(rules(guest, node)), "no rule is left on a node"


def rules(guest: Guest, node: str) -> str:
    """What iptables and ipset know on a node, as a pod on its network sees it."""
    name = f"rules-{node}"[:60]
    line = "iptables-save; ip6tables-save; ipset list -name; echo done"
    pod = _pod(name, "kube-system", node, guest.image(), line)
    pod["spec"] |= {"hostNetwork": True, "restartPolicy": "Never"}
    pod["spec"]["containers"][0]["securityContext"] = {"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}
    guest.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    try:
        said = eventually_sync(
            lambda: (text := guest.kubectl("logs", "-n", "kube-system", name)).endswith("done\n") and text, name, 600
        )
    finally:
        guest.kubectl("delete", "pod", name, "-n", "kube-system", "--force", "--grace-period=0")
    return str(said)
