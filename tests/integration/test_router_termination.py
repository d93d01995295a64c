"""The router of a hosted cluster ends TLS: edge and reencrypt, certificates of Routes and Ingresses, a real HAProxy."""

from __future__ import annotations

import base64
import os
import signal
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.eventually import eventually
from tests.support.router import DOMAIN, World, running_world

from hcp import pki
from hcp.kube import Client
from hcp.kube import resources as r

CLASS = "openshift-default"
CA = pki.new_ca("default")
OTHER = pki.new_ca("other")


def secret(namespace: str, name: str, ca: pki.KeyPair, host: str) -> dict[str, Any]:
    made = pki.issue(ca, host, dns=(host,), usage="server")
    data = {"tls.crt": made.cert_pem, "tls.key": made.key_pem}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def own(ca: pki.KeyPair, host: str) -> dict[str, str]:
    made = pki.issue(ca, host, dns=(host,), usage="server")
    return {"certificate": made.cert_pem.decode(), "key": made.key_pem.decode()}


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    await client.apply(secret(namespace, "default-cert", CA, f"*.{DOMAIN}"))
    options: dict[str, Any] = {"certificate": f"{namespace}/default-cert", "ingress_class": CLASS}
    async with running_world(client, namespace, tmp_path, **options) as made:
        yield made


async def answers(world: World, host: str, wanted: str, path: str = "/", trust: pki.KeyPair = CA) -> None:
    async def check() -> bool:
        try:
            return (await world.https(host, path, trust=trust.cert_pem.decode()))[2] == wanted
        except (ssl.SSLError, OSError):
            return False

    await eventually(check, f"{host}{path} is answered by {wanted}")


async def test_an_edge_route_is_served_with_the_default_certificate_and_by_path(world: World) -> None:
    root, api = await world.backend("root", tls=False), await world.backend("api", tls=False)
    await world.service("root", root)
    await world.service("api", api)
    host = f"web.{DOMAIN}"
    await world.route("root", "root", tls="edge", host=host)
    await world.route("api", "api", tls="edge", host=host, path="/api", insecure="Allow")
    await answers(world, host, "root")
    await answers(world, host, "api", "/api/v1")
    await answers(world, host, "root", "/apis")

    async def plainly() -> bool:
        return (await world.http(host, "/api"))[2] == "api"

    await eventually(plainly, "plain HTTP is allowed there")
    assert (await world.http(host, "/"))[0] == 503, "and not here"
    unknown = await world.https(f"nobody.{DOMAIN}", trust=CA.cert_pem.decode())
    assert unknown[0] == 503, "names that nobody claims are answered, with the default certificate"
    await world.route("root", "root", tls="edge", host=host, insecure="Redirect")

    async def redirected() -> bool:
        status, head, _ = await world.http(host, "/x")
        return status == 302 and f"location: https://{host}/x" in head.lower()

    await eventually(redirected)
    one = await world.backend("one")
    await world.service("raw", one)
    await world.route("raw", "raw", host=f"raw.{DOMAIN}")
    await world.reaches(f"raw.{DOMAIN}", "one")
    await world.route("both", "root", tls="edge", host=f"raw.{DOMAIN}", path="/x")
    assert (await world.admitted("both"))["reason"] == "HostAlreadyClaimed", "its TLS is passed on, not ended"


async def test_certificates_are_given_and_changed_while_it_runs(world: World) -> None:
    await world.service("web", await world.backend("web", tls=False))
    await world.route("own", "web", tls="edge", host="own.example.com", certificates=own(OTHER, "own.example.com"))
    await answers(world, "own.example.com", "web", trust=OTHER)
    pid = world.process.pid
    await world.route("own", "web", tls="edge", host="own.example.com", certificates=own(CA, "own.example.com"))
    await answers(world, "own.example.com", "web", trust=CA)
    # The default one too.
    await world.route("plain", "web", tls="edge", host=f"plain.{DOMAIN}")
    await answers(world, f"plain.{DOMAIN}", "web")
    await world.client.apply(secret(world.namespace, "default-cert", OTHER, f"*.{DOMAIN}"))
    await answers(world, f"plain.{DOMAIN}", "web", trust=OTHER)
    assert world.process.pid == pid
    # And a process that is started anew has them all.
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await answers(world, "own.example.com", "web", trust=CA)
    assert world.process.pid != pid


async def test_a_certificate_that_is_none_harms_nobody(world: World) -> None:
    await world.service("web", await world.backend("web", tls=False))
    await world.route("good", "web", tls="edge", host=f"good.{DOMAIN}")
    await answers(world, f"good.{DOMAIN}", "web")
    pid, good = world.process.pid, own(CA, "bad.example.com")
    spoiled = {
        "words": {"certificate": "no certificate", "key": "no key"},
        "strangers": {**good, "key": own(CA, "bad.example.com")["key"]},
        "commands": {**good, "certificate": f"{good['certificate']}\n\nshutdown frontend http\n\n"},
    }
    for name, given in spoiled.items():
        await world.route(name, "web", tls="edge", host=f"{name}.example.com", certificates=given)
    for name in ("words", "strangers"):
        assert (await world.admitted(name))["reason"] == "NotServable", name
    await answers(world, f"good.{DOMAIN}", "web")
    assert (await world.http("anything", "/_router/healthz"))[0] == 200, "nothing of a certificate is a command"
    assert world.process.pid == pid
    await world.route("half", "web", tls="edge", host="half.example.com", certificates={"key": good["key"]})
    assert (await world.admitted("half"))["reason"] == "IncompleteCertificate"


async def test_pods_are_checked_by_the_authority_of_their_route(world: World) -> None:
    greeter = await world.backend("tls-pod", https=True)
    await world.service("pod", greeter)
    signed = greeter.authority
    await world.route(
        "right", "pod", tls="reencrypt", host=f"right.{DOMAIN}", certificates={"destinationCACertificate": signed}
    )
    await answers(world, f"right.{DOMAIN}", "tls-pod")
    stranger = {"destinationCACertificate": OTHER.cert_pem.decode()}
    await world.route("wrong", "pod", tls="reencrypt", host=f"wrong.{DOMAIN}", certificates=stranger)
    assert (await world.admitted("wrong"))["status"] == "True"

    async def refused() -> bool:
        return (await world.https(f"wrong.{DOMAIN}"))[0] == 503

    await eventually(refused)
    await world.route("none", "pod", tls="reencrypt", host=f"none.{DOMAIN}")
    assert (await world.admitted("none"))["reason"] == "NoDestinationCA"


def ingress(world: World, name: str, host: str, *paths: tuple[str, str, str], **spec: Any) -> dict[str, Any]:
    listed = [
        {"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": {"number": 443}}}}
        for path, kind, service in paths
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {"rules": [{"host": host, "http": {"paths": listed}}], **spec},
    }


async def test_ingresses_are_served_by_exact_path_and_by_whole_elements(world: World) -> None:
    for name in ("root", "foo", "only"):
        await world.service(name, await world.backend(name, tls=False))
    host = f"shop.{DOMAIN}"
    paths = (("/", "Prefix", "root"), ("/foo", "Prefix", "foo"), ("/foo/only", "Exact", "only"))
    await world.client.apply(ingress(world, "shop", host, *paths))
    for path, wanted in {
        "/": "root",
        "/foo": "foo",
        "/foo/": "foo",
        "/foobar": "root",
        "/foo/only": "only",
        "/foo/only/x": "foo",
    }.items():
        await answers(world, host, wanted, path)

    async def plainly() -> bool:
        return (await world.http(host, "/foo"))[2] == "foo"

    await eventually(plainly, "over plain HTTP too")

    async def told() -> bool:
        live = await world.client.get(r.INGRESSES, "shop", world.namespace)
        return bool(live["status"]["loadBalancer"].get("ingress") == [{"hostname": f"router-default.{DOMAIN}"}])

    await eventually(told, "its status says where")
    await world.client.apply(secret(world.namespace, "shop-cert", OTHER, "shop.example.com"))
    tls = [{"hosts": ["shop.example.com"], "secretName": "shop-cert"}]
    await world.client.apply(ingress(world, "shop", "shop.example.com", *paths, tls=tls, ingressClassName=CLASS))
    await answers(world, "shop.example.com", "root", trust=OTHER)
    await world.client.apply(ingress(world, "shop", "shop.example.com", *paths, ingressClassName="another"))

    async def left() -> bool:
        return (await world.https("shop.example.com"))[0] == 503

    await eventually(left, "an Ingress of another class is not ours")
