"""Hosted clusters that are published by Routes alone: none needs an address of its own, and nothing waits for one."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, rests, says
from tests.support.registry import Registry

from hcp.kube import Client
from hcp.kube import resources as k

ROUTED = [
    {"service": name, "servicePublishingStrategy": {"type": "Route"}}
    for name in ("APIServer", "Konnectivity", "Ignition", "OAuthServer")
]
DOMAIN = "apps.example.test"


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    return await s.push_release(registry, tmp_path, "1.36.3")


def _decoded(secret: dict[str, Any], key: str) -> bytes:
    return base64.b64decode(secret["data"][key])


async def test_two_clusters_share_the_routers_address(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry
) -> None:
    operator()
    names = ("first", "second")
    for name in names:
        await s.create(admin, name, image, registry, services=ROUTED)
    for name in names:
        ns, host = f"clusters-{name}", f"kube-apiserver-clusters-{name}.{DOMAIN}"
        await eventually(lambda n=name: says(admin, n, "InfrastructureReady", "True"), name)  # type: ignore[misc]

        async def published(name: str = name, host: str = host) -> bool:
            found = await admin.get(k.HOSTEDCLUSTERS, name, "clusters")
            return bool(found["status"]["controlPlaneEndpoint"] == {"host": host, "port": 443})

        await eventually(published, "the API's address is that of its Route")
        routes = {one["metadata"]["name"]: one["spec"] for one in await admin.list(k.ROUTES, ns)}
        assert routes["kube-apiserver"]["host"] == host
        assert {one["tls"]["termination"] for one in routes.values()} == {"passthrough"}
        assert len({one["host"] for one in routes.values()}) == len(routes) >= 2
        kinds = {one["metadata"]["name"]: one["spec"]["type"] for one in await admin.list(k.SERVICES, ns)}
        assert set(kinds.values()) == {"ClusterIP"}, kinds

        # Nodes, people and we ourselves call it by this name; pods inside by theirs.
        serving = await eventually(lambda n=ns: admin.get_or_none(k.SECRETS, "kas-server-crt", n), "a certificate")  # type: ignore[misc]
        certificate = x509.load_pem_x509_certificate(_decoded(serving, "tls.crt"))
        known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert {host, "kubernetes.default"} <= set(known.get_values_for_type(x509.DNSName))
        for secret, where in (
            (f"{name}-admin-kubeconfig", "clusters"),
            ("admin-kubeconfig", ns),
            ("bootstrap-kubeconfig", ns),
        ):
            found = await eventually(lambda n=secret, w=where: admin.get_or_none(k.SECRETS, n, w), secret)  # type: ignore[misc]
            server = yaml.safe_load(_decoded(found, "kubeconfig"))["clusters"][0]["cluster"]["server"]
            assert server == f"https://{host}:443", secret
    await eventually(lambda: rests(admin, "first"), "nothing more is written")
    for name in names:
        await admin.delete(k.HOSTEDCLUSTERS, name, "clusters")
    for name in names:
        await eventually(lambda n=name: gone(admin, n), "all is gone")  # type: ignore[misc]
