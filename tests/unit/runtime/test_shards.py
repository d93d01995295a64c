"""Which cluster is whose, and how shards are dealt out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.api.names import LABEL_CONTROL_PLANE_NAMESPACE, LABEL_DOCUMENT_OF, control_plane_namespace
from hcp.kube import Client, ClusterConfig
from hcp.kube import resources as k
from hcp.runtime.context import Informers
from hcp.runtime.shards import MOST_SHARDS, Shard, fair, hosted_of, shard_of, shards_problem

MEMBERS = st.lists(st.sampled_from([f"operator-{n}" for n in range(6)]), min_size=1, max_size=6, unique=True)
HOLDERS = st.dictionaries(st.integers(0, 11), st.sampled_from([f"operator-{n}" for n in range(8)]))


def obj(kind: str, name: str, ns: str | None = None, spec: Any = None, **labels: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": labels, "resourceVersion": "1"}
    return {"kind": kind, "metadata": meta | ({"namespace": ns} if ns else {}), "spec": spec or {}}


@given(st.text(), st.integers(1, MOST_SHARDS))
def test_every_cluster_is_in_exactly_one_shard(hosted: str, count: int) -> None:
    assert sum(Shard(number, count).has(hosted) for number in range(count)) == 1


def test_the_shard_of_a_cluster_is_the_same_for_every_version_of_the_operator() -> None:
    assert [shard_of(f"clusters-c{n}", 3) for n in range(8)] == [0, 1, 1, 0, 0, 2, 2, 2]


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_shards_are_about_equally_full(count: int) -> None:
    full = Counter(shard_of(f"clusters-c{n:04d}", count) for n in range(1000))
    assert min(full.values()) > 0.75 * 1000 / count
    assert max(full.values()) < 1.25 * 1000 / count


def test_everything_about_a_cluster_is_in_its_shard() -> None:
    hosted = control_plane_namespace("team", "a.b")
    assert hosted == "team-a-b"
    about = [
        obj("HostedCluster", "a.b", "team"),
        obj("NodePool", "workers", "team", {"clusterName": "a.b"}),
        obj("Namespace", hosted),
        obj("Deployment", "kube-apiserver", hosted),
        obj("Secret", "a.b-admin-kubeconfig", "team", **{LABEL_CONTROL_PLANE_NAMESPACE: hosted}),
    ]
    assert {hosted_of(one) for one in about} == {hosted}
    assert hosted_of(obj("Node", "infra-0")) is None


def test_of_what_is_followed_everywhere_only_the_shard_s_own_is_kept() -> None:
    ours, theirs = (next(f"c-{n}" for n in range(99) if shard_of(f"c-{n}", 3) == which) for which in (1, 2))
    keeps = Shard(1, 3).filter(None)
    assert keeps is not None
    assert keeps(obj("Secret", "x", ours))
    assert not keeps(obj("Secret", "x", theirs))


def test_in_a_namespace_of_people_everything_is_kept_but_documents_of_others() -> None:
    ours, theirs = (next(f"c-{n}" for n in range(99) if shard_of(f"c-{n}", 3) == which) for which in (1, 2))
    keeps = Shard(1, 3).filter("hypershift")
    assert keeps is not None
    assert keeps(obj("Secret", "x", "hypershift"))
    assert keeps(obj("Secret", "x", "hypershift", **{LABEL_DOCUMENT_OF: ours}))
    assert not keeps(obj("Secret", "x", "hypershift", **{LABEL_DOCUMENT_OF: theirs}))


def test_who_shares_nothing_filters_nothing() -> None:
    assert Shard().filter(None) is None
    informers = Informers(Client(ClusterConfig("https://127.0.0.1:1")))
    assert informers.all_clusters() is informers.get(k.HOSTEDCLUSTERS)


def test_a_cache_of_a_shard_takes_in_and_lets_go_by_its_filter() -> None:
    client = Client(ClusterConfig("https://127.0.0.1:1"))
    cache = Informers(client, Shard(1, 3)).get(k.CONFIGMAPS)
    ours, theirs = (next(f"c-{n}" for n in range(99) if shard_of(f"c-{n}", 3) == which) for which in (1, 2))
    cache._take("ADDED", obj("ConfigMap", "x", ours))
    cache._take("ADDED", obj("ConfigMap", "x", theirs))
    assert [one["metadata"]["namespace"] for one in cache.list()] == [ours]
    told: list[Any] = []
    cache.add_listener(lambda old, new: told.append(new))
    moved = obj("ConfigMap", "x", ours, **{LABEL_CONTROL_PLANE_NAMESPACE: theirs})
    moved["metadata"]["resourceVersion"] = "2"
    cache._take("MODIFIED", moved)
    assert (cache.list(), told) == ([], [None])
    cache._synced.set()
    assert cache.covers(obj("ConfigMap", "y", ours))
    assert not cache.covers(obj("ConfigMap", "y", theirs))


def test_what_is_known_of_all_clusters_is_little() -> None:
    client = Client(ClusterConfig("https://127.0.0.1:1"))
    informers = Informers(client, Shard(1, 3))
    everyone = informers.all_clusters()
    assert everyone is not informers.get(k.HOSTEDCLUSTERS)
    for number in range(9):
        spec = {"infraID": f"i{number}", "pullSecret": {"name": "x"}}
        everyone._take("ADDED", obj("HostedCluster", f"c{number}", "clusters", spec))
    assert [one["spec"] for one in everyone.list()] == [{"infraID": f"i{number}"} for number in range(9)]


@given(st.integers(1, 12), MEMBERS, HOLDERS)
def test_a_plan_is_fair_complete_and_moves_nothing_without_need(
    count: int, members: list[str], holders: dict[int, str]
) -> None:
    plan = fair(count, members, holders)
    held = Counter(plan.values())
    sizes = [held[member] for member in members]
    assert sorted(plan) == list(range(count))
    assert set(plan.values()) <= set(members)
    assert max(sizes) - min(sizes) <= 1
    before = Counter(who for number, who in holders.items() if number < count)
    for member in members:
        kept = sum(plan[number] == member for number, who in holders.items() if who == member and number < count)
        assert kept == min(before[member], held[member])


@given(st.integers(1, 12), MEMBERS, HOLDERS)
def test_a_plan_that_is_carried_out_stays(count: int, members: list[str], holders: dict[int, str]) -> None:
    plan = fair(count, members, holders)
    assert fair(count, reversed(members), plan) == plan


def test_whoever_comes_gets_shards_and_those_of_whoever_goes_are_dealt_out() -> None:
    alone = fair(4, ["a"], {})
    assert alone == dict.fromkeys(range(4), "a")
    two = fair(4, ["a", "b"], alone)
    assert two == {0: "a", 1: "a", 2: "b", 3: "b"}
    assert fair(4, ["b"], two) == dict.fromkeys(range(4), "b")
    assert fair(2, ["a", "b", "c"], {0: "c", 1: "b"}) == {0: "c", 1: "b"}


@pytest.mark.parametrize(("count", "fine"), [(0, False), (-1, False), (1, True), (MOST_SHARDS, True), (33, False)])
def test_a_number_of_shards_is_judged(count: int, fine: bool) -> None:
    assert (shards_problem(count) == "") == fine
