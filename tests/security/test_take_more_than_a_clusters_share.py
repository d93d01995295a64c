"""A tenant asks for load balancers, volumes and machines without end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.unit import hostedcluster as sample

from hcp.controlplane import quota
from hcp.hostedcluster import translate
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.kube.errors import Forbidden

Object = dict[str, Any]


@pytest.fixture
async def admin(own_server: ApiServer) -> AsyncIterator[Client]:
    controllers = s.Controllers(own_server, "resourcequota-controller")
    try:
        async with Client(load_config(own_server.kubeconfig)) as made:
            yield made
    finally:
        controllers.stop()


def balancer(number: int, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"lb-{number}", "namespace": namespace},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }


def claim(number: int, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"claim-{number}", "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


async def test_the_namespace_gives_its_share_and_no_more(admin: Client) -> None:
    params = translate.params(sample.cluster(), apps_domain="apps.example.com")
    manifest = quota.resource_quota(params, {"claims": "5"})
    namespace = manifest["metadata"]["namespace"]
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    await admin.create(balancer(-1, namespace))
    await admin.apply(manifest)

    async def known() -> bool:
        live = await admin.get(k.RESOURCEQUOTAS, quota.NAME, namespace)
        return bool((live.get("status") or {}).get("used", {}).get("services.loadbalancers") == "1")

    await eventually(known)
    live = await admin.get(k.RESOURCEQUOTAS, quota.NAME, namespace)
    assert live["spec"]["hard"] == {"services.loadbalancers": "20", "persistentvolumeclaims": "5", "pods": "100"}
    for make, most in ((balancer, 19), (claim, 5)):
        for number in range(most):
            await admin.create(make(number, namespace))
        with pytest.raises(Forbidden, match="exceeded quota"):
            await admin.create(make(most, namespace))
