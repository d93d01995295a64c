"""What one change costs must not depend on how many clusters there are: a thousand would cost a million times that."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.support import crds as rendered

from hcp.api.names import ANNOTATION_NODEPOOL, LABEL_CONTROL_PLANE_NAMESPACE
from hcp.kube import Client, ClusterConfig, Resource
from hcp.kube import resources as k
from hcp.nodepool.watches import Watches
from hcp.operator import wiring
from hcp.operator.support import Support
from hcp.runtime import EventRecorder, Informer
from hcp.runtime.context import Guests, Informers, OperatorContext

Object = dict[str, Any]
NAMESPACE = "clusters"


class Caches:
    """All controllers on caches that nobody fills but the test."""

    def __init__(self) -> None:
        client = Client(ClusterConfig("https://127.0.0.1:1"))
        self.ctx = OperatorContext(client, Informers(client), Guests(client, inside=False), EventRecorder(client, "t"))
        self.controllers = {c.name: c for c in wiring.everything(self.ctx, Support(), own_cluster_api=False)}
        self._version = 0

    def tell(self, resource: Resource, obj: Object, ns: str | None = None, labels: str | None = None) -> None:
        self._version += 1
        made = copy.deepcopy(obj) | {"kind": resource.kind, "apiVersion": resource.api_version}
        made["metadata"] |= {"resourceVersion": str(self._version), "uid": made["metadata"]["name"]}
        informer = self.ctx.informers.get(resource, ns=ns, labels=labels)
        informer._synced.set()
        informer._tell(*informer._store.put(made))

    def asked(self, controller: str) -> int:
        return len(self.controllers[controller].queue)


def cluster(number: int) -> Object:
    made = rendered.rendered_cluster(NAMESPACE, f"c{number}")
    made["spec"]["pullSecret"]["name"] = f"pull-{number}"
    made["spec"]["additionalTrustBundle"] = {"name": f"trust-{number}"}
    return made


def pool(number: int) -> Object:
    made = rendered.rendered_pool(NAMESPACE, f"p{number}")
    made["spec"] |= {"clusterName": f"c{number}", "config": [{"name": f"config-{number}"}]}
    return made


def machine(number: int) -> Object:
    notes = {ANNOTATION_NODEPOOL: f"{NAMESPACE}/p{number}"}
    return {"metadata": {"name": f"m{number}", "namespace": f"{NAMESPACE}-c{number}", "annotations": notes}}


def named(name: str, number: int) -> Object:
    return {"metadata": {"name": f"{name}-{number}", "namespace": NAMESPACE}}


def plane(number: int) -> Object:
    hosted = f"{NAMESPACE}-c{number}"
    labels = {LABEL_CONTROL_PLANE_NAMESPACE: hosted}
    return {"metadata": {"name": "kube-apiserver", "namespace": hosted, "labels": labels}, "spec": {}}


def gone_through(clusters: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many objects are gone through when one of each kind changes in a fleet of this size."""
    caches = Caches()
    watches = Watches(caches.ctx)
    for number in range(clusters):
        caches.tell(k.HOSTEDCLUSTERS, cluster(number))
        caches.tell(k.NODEPOOLS, pool(number))
        caches.tell(k.MACHINES, machine(number))
    looked = 0
    through = Informer.list

    def counted(self: Informer, ns: str | None = None) -> list[Object]:
        nonlocal looked
        found = through(self, ns)
        looked += len(found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Informer, "list", counted)
        caches.tell(k.HOSTEDCLUSTERS, {**cluster(1), "status": {"conditions": []}})
        caches.tell(k.NODEPOOLS, {**pool(1), "status": {"replicas": 1}})
        caches.tell(k.MACHINES, machine(1))
        caches.tell(k.SECRETS, named("pull", 1), ns=NAMESPACE)
        caches.tell(k.CONFIGMAPS, named("trust", 1), ns=NAMESPACE)
        caches.tell(k.DEPLOYMENTS, plane(1), labels=LABEL_CONTROL_PLANE_NAMESPACE)
        assert list(watches._users_of_secret(named("pull", 1))) == [f"{NAMESPACE}/p1"]
        assert list(watches._users_of_config_map(named("trust", 1))) == [f"{NAMESPACE}/p1"]
        assert list(watches._users_of_config_map(named("config", 1))) == [f"{NAMESPACE}/p1"]
        assert list(watches._users_of_config_map(named("other", 1))) == []
    return looked


async def test_a_change_goes_through_the_same_few_objects_in_a_small_fleet_and_in_a_large_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert gone_through(40, monkeypatch) == gone_through(4, monkeypatch)


async def test_a_secret_of_a_user_asks_for_a_pass_over_the_clusters_that_name_it_and_no_other() -> None:
    caches = Caches()
    for number in range(3):
        caches.tell(k.HOSTEDCLUSTERS, cluster(number))
    queue = caches.controllers["hostedcluster"].queue
    while len(queue):
        queue.done(str(await queue.get()))
    caches.tell(k.SECRETS, named("pull", 2), ns=NAMESPACE)
    assert [await queue.get() for _ in range(len(queue))] == [f"{NAMESPACE}/c2"]


async def test_the_bootstrap_servers_certificate_is_looked_at_when_names_change_not_with_every_status() -> None:
    caches = Caches()
    queue = caches.controllers["ignition-certificates"].queue
    caches.tell(k.HOSTEDCLUSTERS, cluster(1))
    queue.done(str(await queue.get()))
    caches.tell(k.HOSTEDCLUSTERS, {**cluster(1), "status": {"conditions": [{"type": "Available"}]}})
    assert caches.asked("ignition-certificates") == 0
    caches.tell(k.HOSTEDCLUSTERS, {**cluster(1), "status": {"ignitionEndpoint": "ignition.example.test"}})
    assert caches.asked("ignition-certificates") == 1
