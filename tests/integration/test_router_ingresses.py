"""Ingresses without hosts and with default backends, certificates in Secrets, and HTTP/2, by a real HAProxy."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.router import DOMAIN, World, haproxy_binary, own_address, running_world

from hcp import pki
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.router.ingresses import ANY_HOST, TERMINATION

CLASS = "openshift-default"
CA = pki.new_ca("default")


async def secret(world_client: Client, namespace: str, name: str, *hosts: str) -> None:
    made = pki.issue(CA, hosts[0], dns=hosts, usage="server")
    data = {"tls.crt": made.cert_pem, "tls.key": made.key_pem}
    await world_client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": namespace},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
    )


async def the_class(client: Client, *, any_host: bool) -> None:
    await client.apply(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": CLASS, "annotations": {ANY_HOST: "true"} if any_host else {}},
            "spec": {"controller": "openshift.io/ingress-to-route"},
        }
    )


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    await secret(client, namespace, "default-cert", f"*.{DOMAIN}")
    await the_class(client, any_host=False)
    options: dict[str, Any] = {"certificate": f"{namespace}/default-cert", "ingress_class": CLASS}
    async with running_world(client, namespace, tmp_path, **options) as found:
        yield found
        for one in await client.list(r.INGRESSES):
            await client.delete(r.INGRESSES, one["metadata"]["name"], one["metadata"]["namespace"], missing_ok=True)
        await client.delete(r.INGRESSCLASSES, CLASS, missing_ok=True)


def to(service: str) -> dict[str, Any]:
    return {"service": {"name": service, "port": {"number": 443}}}


def ingress(world: World, name: str, *rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": spec.pop("ns", world.namespace)}
    meta["annotations"] = spec.pop("annotations", {})
    body = {**({"rules": list(rules)} if rules else {}), **spec}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": body}


def rule(host: str, *paths: tuple[str, str, str]) -> dict[str, Any]:
    listed = [{"path": path, "pathType": kind, "backend": to(service)} for path, kind, service in paths]
    return {**({"host": host} if host else {}), "http": {"paths": listed}}


async def answers(world: World, host: str, path: str, wanted: str | int) -> None:
    async def check() -> bool:
        status, _, body = await world.http(host, path)
        return wanted in (status, body)

    await eventually(check, f"{host}{path} is answered with {wanted}")


async def test_what_no_rule_fits_goes_to_the_default_backend(world: World) -> None:
    for name in ("rest", "shop", "only"):
        await world.service(name, await world.backend(name, tls=False))
    host, paths = f"shop.{DOMAIN}", (("/shop", "Prefix", "shop"), ("/only/", "Exact", "only"))
    await world.client.apply(ingress(world, "shop", rule(host, *paths), defaultBackend=to("rest")))
    for path, wanted in {"/shop/x": "shop", "/only/": "only", "/only": "rest", "/": "rest", "/SHOP": "rest"}.items():
        await answers(world, host, path, wanted)
    assert (await world.http("nobody.example.com"))[0] == 503, "nobody may answer for names that nobody claims"
    told = await _events(world, "shop")
    assert told == {"NoHost"}


async def _events(world: World, name: str) -> set[str]:
    found: set[str] = set()

    async def some() -> bool:
        events = await world.client.list(r.EVENTS, world.namespace)
        found.update(
            str(one["reason"])
            for one in events
            if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == ("Ingress", name)
        )
        return bool(found)

    await eventually(some, f"an event about {name}")
    return found


async def test_rules_without_a_host_are_served_where_the_class_permits_it(world: World) -> None:
    for name in ("all", "exact", "known", "late"):
        await world.service(name, await world.backend(name, tls=False))
    await the_class(world.client, any_host=True)
    paths = (("/", "Prefix", "all"), ("/exact", "Exact", "exact"))
    await world.client.apply(ingress(world, "all", rule("", *paths)))
    await world.client.apply(ingress(world, "known", rule(f"known.{DOMAIN}", ("/a", "Prefix", "known"))))
    await answers(world, "nobody.example.com", "/x", "all")
    await answers(world, "nobody.example.com", "/exact", "exact")
    await answers(world, "nobody.example.com", "/exact/", "all")
    await answers(world, f"known.{DOMAIN}", "/a/b", "known")

    async def over_tls() -> bool:
        return (await world.https(f"nobody.{DOMAIN}", "/x", trust=CA.cert_pem.decode()))[2] == "all"

    await eventually(over_tls, "over TLS too")
    # The first namespace has them; the next one takes over when it is gone.
    other = await world.other_namespace()
    await world.service("late", await world.backend("second", tls=False), ns=other)
    await world.client.apply(ingress(world, "late", defaultBackend=to("late"), ns=other))
    await answers(world, "nobody.example.com", "/x", "all")
    await world.client.delete(r.INGRESSES, "all", world.namespace)
    await answers(world, "nobody.example.com", "/x", "second")
    await the_class(world.client, any_host=False)
    await answers(world, "nobody.example.com", "/x", 503)


async def test_an_ingress_is_passed_on_and_carries_annotations(world: World) -> None:
    await world.service("raw", await world.backend("raw"))
    host = f"raw.{DOMAIN}"
    tls = [{"hosts": [host]}]
    made = ingress(world, "raw", rule(host, ("/", "Prefix", "raw")), tls=tls, annotations={TERMINATION: "passthrough"})
    await world.client.apply(made)
    await world.reaches(host, "raw")
    await world.service("web", await world.backend("web", tls=False))
    kept = {"haproxy.router.openshift.io/ip_allowlist": "192.0.2.1"}
    await world.client.apply(ingress(world, "web", rule(f"web.{DOMAIN}", ("/", "Prefix", "web")), annotations=kept))
    await answers(world, f"web.{DOMAIN}", "/", 403)


def external(world: World, name: str, host: str, named: str) -> dict[str, Any]:
    tls = {"termination": "edge", "externalCertificate": {"name": named}}
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {"host": host, "to": {"kind": "Service", "name": "web"}, "tls": tls},
    }


async def curl(world: World, host: str, directory: Path, *options: str) -> str:
    """Protocol and certificate as a browser would see them."""
    trust = directory / "ca.pem"
    trust.write_bytes(CA.cert_pem)
    port = world.process.settings.https_port
    command = ["curl", "--silent", "--show-error", "--max-time", "10", "--cacert", str(trust), *options]
    # A proxy of the environment knows none of these names.
    command += ["--noproxy", "*"]
    command += ["--resolve", f"{host}:{port}:127.0.0.1", "--write-out", " %{http_version} %{http_code}"]
    process = await asyncio.create_subprocess_exec(
        *command, f"https://{host}:{port}/", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, wrong = await process.communicate()
    return (said if process.returncode == 0 else wrong).decode()


async def test_a_certificate_in_a_secret_and_http2_with_it(world: World, tmp_path: Path) -> None:
    await world.service("web", await world.backend("web", tls=False))
    host = "own.example.com"
    await world.client.apply(external(world, "own", host, "own-cert"))
    assert (await world.admitted("own"))["reason"] == "ExternalCertificateNotFound"
    await secret(world.client, world.namespace, "own-cert", host)

    async def by(protocol: str, host: str = host) -> bool:
        return await curl(world, host, tmp_path) == f"web {protocol} 200"

    await eventually(lambda: by("2"), "a certificate for this host alone: HTTP/2")
    await secret(world.client, world.namespace, "own-cert", host, "*.example.com")
    await eventually(lambda: by("1.1"), "others may have a host of this certificate: HTTP/1.1")
    await world.route("plain", "web", tls="edge", host=f"plain.{DOMAIN}")
    await eventually(lambda: by("1.1", f"plain.{DOMAIN}"), "the default certificate is for all hosts")


@contextlib.asynccontextmanager
async def speaks_http2_only(directory: Path) -> AsyncIterator[int]:
    port = free_port()
    config = directory / "h2.cfg"
    config.write_text(
        "defaults\n  mode http\n  timeout client 1m\n  timeout server 1m\n  timeout connect 1s\n"
        f"frontend f\n  bind 0.0.0.0:{port} proto h2\n"
        "  http-request return status 200 content-type text/plain string two\n"
    )
    process = await asyncio.create_subprocess_exec(haproxy_binary(), "-db", "-f", str(config))
    try:
        yield port
    finally:
        process.terminate()
        await process.wait()


async def test_pods_that_speak_http2_without_tls(world: World, tmp_path: Path) -> None:
    async with speaks_http2_only(tmp_path) as port:
        meta = {"name": "two", "namespace": world.namespace}
        ports = [{"name": "grpc", "port": 80, "appProtocol": "kubernetes.io/h2c"}]
        await world.client.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}})
        await world.client.apply(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {**meta, "labels": {"kubernetes.io/service-name": "two"}},
                "addressType": "IPv4",
                "ports": [{"name": "grpc", "port": port, "protocol": "TCP"}],
                "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
            }
        )
        await world.route("two", "two", tls="edge", host=f"two.{DOMAIN}", port={"targetPort": "grpc"}, insecure="Allow")
        await answers(world, f"two.{DOMAIN}", "/", "two")

        async def over_tls() -> bool:
            return (await world.https(f"two.{DOMAIN}"))[2] == "two"

        await eventually(over_tls, "over TLS too")
