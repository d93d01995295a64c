"""NetworkPolicies inside a hosted cluster: the first one brings who enforces them, the last takes it away again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running
from tests.support.hosted_pods import HostedPods
from tests.support.passes import a_pass
from tests.support.registry import Registry
from tests.support.running_cluster import kubeconfig

from hcp.guest import enforcement, keeper, network_policy
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k

SYSTEM = "kube-system"
OWN = (k.DAEMONSETS, k.SERVICEACCOUNTS)


@pytest.fixture
def network_type() -> str:
    return "OVNKubernetes"


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    return await s.push_release(registry, tmp_path, "1.36.3", (*s.COMPONENTS, network_policy.IMAGE))


def policy(name: str) -> dict[str, Any]:
    return {
        "apiVersion": k.NETWORKPOLICIES.api_version,
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }


async def _daemon_set(guest: Client) -> dict[str, Any] | None:
    return await guest.get_or_none(k.DAEMONSETS, network_policy.NAME, SYSTEM)


async def _enforces(guest: Client) -> bool:
    live = await _daemon_set(guest)
    return live is not None and not network_policy.is_ending(live)


async def _ends(guest: Client) -> bool:
    live = await _daemon_set(guest)
    return live is not None and network_policy.is_ending(live)


async def _nothing(guest: Client) -> bool:
    own = [await guest.get_or_none(kind, network_policy.NAME, SYSTEM) for kind in OWN]
    rights = [await guest.get_or_none(kind, network_policy.ROLE) for kind in (k.CLUSTERROLES, k.CLUSTERROLEBINDINGS)]
    return not any((*own, *rights))


async def test_it_is_there_from_the_first_policy_until_nodes_are_free_of_the_last(
    admin: Client, pods: HostedPods, operator: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "ASK_WAITING", 1.0)
    monkeypatch.setattr(enforcement, "LINGER", 0.0)
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        await guest.create(policy("early"))
        await eventually(lambda: guest.get_or_none(k.DAEMONSETS, "kube-flannel", SYSTEM), "the network")
        assert await _nothing(guest), "a policy in a cluster without nodes costs nothing"
        await guest_nodes.join(guest, "worker-1")
        await eventually(lambda: _enforces(guest), "somebody enforces it")
        await guest_nodes.report_available(guest)

        # What a tenant deletes of it comes back while there is a policy.
        await guest.delete(k.DAEMONSETS, network_policy.NAME, SYSTEM)
        await eventually(lambda: _enforces(guest), "it is there again")
        await guest_nodes.report_available(guest)

        await guest.create(policy("second"))
        await guest.delete(k.NETWORKPOLICIES, "early", "default")
        before = await _daemon_set(guest)
        await guest.delete(k.NETWORKPOLICIES, "second", "default")
        await eventually(lambda: _ends(guest), "rules are taken away")
        after = await _daemon_set(guest)
        assert before and after and before["metadata"]["uid"] == after["metadata"]["uid"]

        # Somebody wants it again before the end.
        await guest.create(policy("late"))
        await eventually(lambda: _enforces(guest), "it enforces again")
        await guest.delete(k.NETWORKPOLICIES, "late", "default")
        await eventually(lambda: _ends(guest), "rules are taken away again")
        assert not await _nothing(guest), "it stays until all nodes have done it"
        await eventually(lambda: _nothing(guest), "nothing is left", lambda: guest_nodes.report_available(guest))


async def test_it_outlives_the_last_policy_for_a_while_and_writes_nothing_meanwhile(
    admin: Client, pods: HostedPods, operator: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "ASK_WAITING", 0.2)
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        await guest_nodes.join(guest, "worker-1")
        await guest.create(policy("one"))
        await eventually(lambda: _enforces(guest), "somebody enforces it")
        await guest.delete(k.NETWORKPOLICIES, "one", "default")
        async with a_pass("guest"):
            pass
        first = await _daemon_set(guest)
        for _ in range(2):
            async with a_pass("guest"):
                pass
        last = await _daemon_set(guest)
        assert first and last and first["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]
        monkeypatch.setattr(enforcement, "LINGER", 0.0)
        await eventually(lambda: _ends(guest), "then it ends")
