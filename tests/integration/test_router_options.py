"""What annotations ask for is done by a real HAProxy: timeouts, rates, addresses, balance, headers, paths."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.eventually import eventually
from tests.support.router import DOMAIN, Backend, World, own_address, running_world

from hcp import pki
from hcp.kube import Client
from hcp.kube import resources as r

CLASS = "openshift-default"
CA = pki.new_ca("default")
PREFIX = "haproxy.router.openshift.io/"
HOST = f"web.{DOMAIN}"


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    made = pki.issue(CA, "default", dns=(f"*.{DOMAIN}",), usage="server")
    data = {"tls.crt": made.cert_pem, "tls.key": made.key_pem}
    await client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": "default-cert", "namespace": namespace},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
    )
    options: dict[str, Any] = {"certificate": f"{namespace}/default-cert", "ingress_class": CLASS}
    async with running_world(client, namespace, tmp_path, **options) as found:
        yield found


class Talker:
    """A pod that answers with the head of the request, as slowly as it is told."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.waiting = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"/slow" in head.split(b"\r\n")[0]:
                    self.waiting += 1
                    await self.go_on.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(head), head))
                await writer.drain()
        writer.close()


async def talker(world: World) -> tuple[Talker, Backend]:
    made = Talker()
    server = await asyncio.start_server(made.talk, "0.0.0.0", 0)
    world.servers.append(server)
    return made, Backend("talker", server)


async def annotated(world: World, name: str, tls: str = "edge", insecure: str = "Allow", **asked: str) -> None:
    """A Route of that name to the Service `web`, with these annotations and no others."""
    spec: dict[str, Any] = {"host": f"{name}.{DOMAIN}", "to": {"kind": "Service", "name": "web"}}
    if path := asked.pop("path", ""):
        spec["path"] = path
    if tls:
        spec["tls"] = {"termination": tls, "insecureEdgeTerminationPolicy": insecure}
    annotations = {f"{PREFIX}{key.replace('__', '.')}": value for key, value in asked.items()}
    await world.client.apply(
        {
            "apiVersion": "route.openshift.io/v1",
            "kind": "Route",
            "metadata": {"name": name, "namespace": world.namespace, "annotations": annotations},
            "spec": spec,
        }
    )


async def becomes(
    world: World, name: str, status: int, path: str = "/", *, words: str = "", never: str = "\0", tls: bool = True
) -> None:
    """Until it is answered so: where a Route leads is known before all that it asks for."""

    async def check() -> bool:
        found = await (world.https if tls else world.http)(f"{name}.{DOMAIN}", path)
        said = f"{found[1]}\n{found[2]}".lower()
        return found[0] == status and words.lower() in said and never not in said

    await eventually(check, f"{name}{path} is answered with {status} {words}")


async def test_a_timeout_of_its_own(world: World) -> None:
    slow, pod = await talker(world)
    await world.service("web", pod)
    await annotated(world, "hasty", timeout="300ms")
    await annotated(world, "patient", timeout="10m")
    await becomes(world, "hasty", 200)
    await becomes(world, "patient", 200)
    patient = asyncio.create_task(world.https(f"patient.{DOMAIN}", "/slow"))
    assert (await world.https(f"hasty.{DOMAIN}", "/slow"))[0] == 504
    assert not patient.done()
    slow.go_on.set()
    assert (await patient)[0] == 200


async def test_clients_are_let_in_by_address(world: World) -> None:
    await world.service("web", (await talker(world))[1])
    await annotated(world, "in", ip_allowlist="10.9.0.0/16 127.0.0.0/22 2001:db8::/33")
    await annotated(world, "out", ip_whitelist="192.0.2.0/25 192.0.2.200")
    await becomes(world, "in", 200)
    await becomes(world, "out", 403)
    await becomes(world, "in", 200, tls=False)
    await becomes(world, "out", 403, tls=False)
    await annotated(world, "out")
    await becomes(world, "out", 200)
    await world.service("raw", await world.backend("raw"))
    await world.route("raw", "raw", host=f"raw.{DOMAIN}")
    await world.reaches(f"raw.{DOMAIN}", "raw")
    for networks, wanted in (("192.0.2.7", None), ("127.0.0.1", "raw")):
        body = {"metadata": {"annotations": {f"{PREFIX}ip_allowlist": networks}}}
        await world.client.patch(r.ROUTES, "raw", world.namespace, body)
        await world.reaches(f"raw.{DOMAIN}", wanted)


async def test_who_may_come_counts_for_pods_with_tls_too(world: World) -> None:
    """They have a backend of their own in HAProxy, where requests without annotations leave the rules at once."""
    pod = await world.backend("secure", https=True)
    await world.service("secure", pod)
    more = {"destinationCACertificate": pod.authority}
    host = f"secure.{DOMAIN}"
    await world.route("secure", "secure", tls="reencrypt", host=host, certificates=more)
    await becomes(world, "secure", 200)
    for networks, wanted in (("192.0.2.7", 403), ("127.0.0.1", 200), ("192.0.2.8", 403)):
        body = {"metadata": {"annotations": {f"{PREFIX}ip_allowlist": networks, f"{PREFIX}timeout": "5s"}}}
        await world.client.patch(r.ROUTES, "secure", world.namespace, body)
        await becomes(world, "secure", wanted)
    await world.client.patch(r.ROUTES, "secure", world.namespace, {"metadata": {"annotations": None}})
    await becomes(world, "secure", 200)


async def test_rates_and_requests_at_a_time_are_limited_for_each_client(world: World) -> None:
    slow, pod = await talker(world)
    await world.service("web", pod)
    on = {"rate-limit-connections": "true"}
    await annotated(world, "rate", **on, **{"rate-limit-connections__rate-http": "3"})
    await annotated(world, "few", **on, **{"rate-limit-connections__concurrent-tcp": "3"})
    await becomes(world, "rate", 200)
    await becomes(world, "few", 200)

    async def refused() -> bool:
        """Ten requests in one piece, so that they come together on the slowest machine."""
        reader, writer = await asyncio.open_connection("127.0.0.1", world.process.settings.http_port)
        writer.write(f"GET / HTTP/1.1\r\nHost: rate.{DOMAIN}\r\n\r\n".encode() * 10)
        writer.write_eof()
        said = await reader.read()
        writer.close()
        return b"HTTP/1.1 429 " in said

    await eventually(refused, "some of ten requests at once are too many")
    held = [asyncio.create_task(world.https(f"few.{DOMAIN}", "/slow")) for _ in range(3)]

    async def busy() -> bool:
        return slow.waiting == 3

    await eventually(busy)
    assert (await world.https(f"few.{DOMAIN}"))[0] == 429
    slow.go_on.set()
    assert [one[0] for one in await asyncio.gather(*held)] == [200, 200, 200]
    await becomes(world, "few", 200)


async def test_connections_that_are_passed_on_are_limited_too(world: World) -> None:
    await world.service("raw", await world.backend("raw"))
    await world.route("raw", "raw", host=f"raw.{DOMAIN}")
    await world.reaches(f"raw.{DOMAIN}", "raw")
    asked = {"rate-limit-connections": "true", "rate-limit-connections.concurrent-tcp": "2"}
    body = {"metadata": {"annotations": {f"{PREFIX}{name}": value for name, value in asked.items()}}}
    await world.client.patch(r.ROUTES, "raw", world.namespace, body)
    held: list[asyncio.StreamWriter] = []

    async def full() -> bool:
        try:
            _, writer, name = await world.dial(f"raw.{DOMAIN}")
        except (OSError, ssl.SSLError):
            return len(held) >= 2
        assert name == "raw"
        held.append(writer)
        return False

    await eventually(full, "no more than two at a time")
    for writer in held:
        writer.close()
    await world.reaches(f"raw.{DOMAIN}", "raw")


async def test_balance(world: World) -> None:
    pods = [await world.backend(f"pod-{number}", tls=False) for number in range(3)]
    await world.service("web", *pods)
    for how in ("source", "roundrobin", "leastconn", "random"):
        await annotated(world, how, balance=how)
    for how in ("source", "roundrobin", "leastconn", "random"):

        async def served(how: str = how) -> bool:
            return (await world.http(f"{how}.{DOMAIN}"))[0] == 200

        await eventually(served)
    # All pods are there, and only then: one may be known a moment before the others.
    seen: set[str] = set()

    async def everywhere() -> bool:
        seen.add((await world.http(f"random.{DOMAIN}"))[2])
        return len(seen) == 3

    await eventually(everywhere)

    async def answered(how: str) -> list[int]:
        return sorted(Counter([(await world.http(f"{how}.{DOMAIN}"))[2] for _ in range(12)]).values())

    async def as_asked() -> bool:
        return await answered("source") == [12] and await answered("roundrobin") == [4, 4, 4]

    await eventually(as_asked, "one client, one pod; and each in its turn")


async def test_the_less_busy_pod_is_taken(world: World) -> None:
    slow, first = await talker(world)
    await world.service("web", first)
    await annotated(world, "least", balance="leastconn")
    await becomes(world, "least", 200)
    held = [asyncio.create_task(world.http(f"least.{DOMAIN}", "/slow")) for _ in range(4)]

    async def busy() -> bool:
        return slow.waiting == 4

    await eventually(busy)
    await world.service("web", first, await world.backend("idle", tls=False))

    async def known() -> bool:
        return (await world.http(f"least.{DOMAIN}"))[2] == "idle"

    await eventually(known)
    # Of two by chance, both may be the busy one: a quarter, where chance alone would be half.
    answers = Counter([(await world.http(f"least.{DOMAIN}"))[2] == "idle" for _ in range(240)])
    assert answers[True] > 150
    slow.go_on.set()
    await asyncio.gather(*held)


async def test_paths_and_headers(world: World) -> None:
    await world.service("web", (await talker(world))[1])
    await annotated(world, "shop", path="/shop/v1", **{"rewrite-target": "/"})
    await annotated(world, "deep", path="/", **{"rewrite-target": "/base"})
    for path, wanted in {"/shop/v1": "/", "/shop/v1/": "/", "/shop/v1/a/b?c=d": "/a/b?c=d"}.items():
        await becomes(world, "shop", 200, path, words=f"GET {wanted} HTTP")
    await becomes(world, "deep", 200, "/x", words="GET /base/x HTTP")
    await annotated(world, "strict", hsts_header="max-age=31536000; includeSubDomains;preload")
    header = "strict-transport-security: max-age=31536000;includesubdomains;preload"
    await becomes(world, "strict", 200, words=header)
    assert "strict-transport" not in (await world.http(f"strict.{DOMAIN}"))[1].lower(), "not over plain HTTP"
    await annotated(world, "silent", **{"set-forwarded-headers": "never"})
    await becomes(world, "silent", 200, never="x-forwarded")
    for words in ("x-forwarded-for: 127.0.0.1", "x-forwarded-proto: https"):
        await becomes(world, "shop", 200, "/shop/v1", words=words)
    await annotated(world, "usual")
    await becomes(world, "usual", 200, words="x-forwarded-for: 127.0.0.1")


async def test_connections_to_pods_are_kept_and_never_mixed_up(world: World) -> None:
    """Two pods on one address with two ports: whoever asks for one gets that one, whatever connections are there."""
    names = [f"pod{number}" for number in range(4)]
    for name in names:
        await world.service(name, await world.backend(name, tls=False))
        await world.route(name, name, tls="edge", host=f"{name}.{DOMAIN}")
    for name in names:

        async def right(name: str = name) -> bool:
            return (await world.https(f"{name}.{DOMAIN}"))[2] == name

        await eventually(right)
    for _ in range(25):
        answers = await asyncio.gather(*(world.https(f"{name}.{DOMAIN}") for name in names))
        assert [one[2] for one in answers] == names
    assert own_address() != "127.0.0.1"


async def test_a_word_that_is_none_is_refused_and_the_next_edit_helps(world: World) -> None:
    await world.service("web", (await talker(world))[1])
    await annotated(world, "web", timeout="5s\n\nshow info")
    assert (await world.admitted("web"))["reason"] == "InvalidAnnotation"
    await becomes(world, "web", 503)
    await annotated(world, "web", timeout="5s")
    await becomes(world, "web", 200)
