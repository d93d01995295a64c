"""Gateways of a hosted cluster: the real definitions on a real API server, a real HAProxy behind them."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support import crds as support
from tests.support.eventually import eventually
from tests.support.router import DOMAIN, World, running_world

from hcp import payload, pki
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.router.gateway.listeners import CONTROLLER

CA = pki.new_ca("default")
OTHER = pki.new_ca("other")
API = "gateway.networking.k8s.io/v1"


def definitions() -> list[dict[str, Any]]:
    folder = payload.ensure(["gateway-definitions"])["gateway-definitions"] / "manifests" / "crds"
    return [yaml.load(path.read_text(), Loader=yaml.CSafeLoader) for path in sorted(folder.glob("*.yaml"))]


async def secret(client: Client, namespace: str, name: str, ca: pki.KeyPair, host: str) -> None:
    made = pki.issue(ca, host, dns=(host,), usage="server")
    data = {"tls.crt": made.cert_pem, "tls.key": made.key_pem}
    await client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": namespace},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
    )


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    await secret(client, namespace, "default-cert", CA, f"*.{DOMAIN}")
    options: dict[str, Any] = {"certificate": f"{namespace}/default-cert", "ingress_class": "openshift-default"}
    async with running_world(client, namespace, tmp_path, **options) as found:
        # The kinds come while it runs.
        await support.install(client, definitions())
        await client.apply(
            {
                "apiVersion": API,
                "kind": "GatewayClass",
                "metadata": {"name": "hcp"},
                "spec": {"controllerName": CONTROLLER},
            }
        )
        yield found
        for kind in (r.HTTPROUTES, r.TLSROUTES, r.GATEWAYS):
            for one in await client.list(kind):
                await client.delete(kind, one["metadata"]["name"], one["metadata"]["namespace"], missing_ok=True)


def gateway(world: World, *listeners: dict[str, Any], class_name: str = "hcp") -> dict[str, Any]:
    meta = {"name": "web", "namespace": world.namespace}
    spec = {"gatewayClassName": class_name, "listeners": list(listeners)}
    return {"apiVersion": API, "kind": "Gateway", "metadata": meta, "spec": spec}


HTTP = {"name": "http", "protocol": "HTTP", "port": 80}


def https(secret_name: str, **more: Any) -> dict[str, Any]:
    tls = {"mode": "Terminate", "certificateRefs": [{"name": secret_name}]}
    return {"name": "https", "protocol": "HTTPS", "port": 443, "tls": tls, **more}


def httproute(
    world: World, name: str, hosts: list[str], *rules: dict[str, Any], section: str = "", ns: str = ""
) -> dict[str, Any]:
    ref: dict[str, Any] = {"name": "web", "namespace": world.namespace, **({"sectionName": section} if section else {})}
    return {
        "apiVersion": API,
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": ns or world.namespace},
        "spec": {"parentRefs": [ref], "hostnames": hosts, "rules": list(rules)},
    }


def rule(*services: str, path: str = "/", how: str = "PathPrefix", **more: Any) -> dict[str, Any]:
    refs = [{"name": name, "port": 443} for name in services]
    return {"matches": [{"path": {"type": how, "value": path}}], "backendRefs": refs, **more}


async def condition(world: World, name: str, kind: str, reason: str, ns: str = "") -> None:
    async def check() -> bool:
        live = await world.client.get(r.HTTPROUTES, name, ns or world.namespace)
        found = [one for parent in (live.get("status") or {}).get("parents") or () for one in parent["conditions"]]
        return any((one["type"], one["reason"]) == (kind, reason) for one in found)

    await eventually(check, f"{name} is {reason}")


async def answers(world: World, host: str, path: str, wanted: str | int, *more: str) -> None:
    async def check() -> bool:
        status, _, body = await world.http(host, path, *more)
        return wanted in (status, body)

    await eventually(check, f"{host}{path} is answered with {wanted}")


async def services(world: World, *names: str) -> None:
    for name in names:
        await world.service(name, await world.backend(name, tls=False))


async def test_an_http_route_is_served_by_host_and_path_and_told_so(world: World) -> None:
    await services(world, "root", "shop", "only")
    await world.client.apply(gateway(world, HTTP))
    host = f"shop.{DOMAIN}"
    rules = (rule("root"), rule("shop", path="/shop"), rule("only", path="/shop/only", how="Exact"))
    await world.client.apply(httproute(world, "shop", [host], *rules))
    for path, wanted in {"/": "root", "/shop": "shop", "/shopping": "root", "/shop/only": "only"}.items():
        await answers(world, host, path, wanted)
    await condition(world, "shop", "Accepted", "Accepted")
    await condition(world, "shop", "ResolvedRefs", "ResolvedRefs")
    assert (await world.https(host))[0] == 503, "no listener has TLS"

    async def told() -> bool:
        live = await world.client.get(r.GATEWAYS, "web", world.namespace)
        status = live.get("status") or {}
        good = {one["type"]: one["status"] for one in status.get("conditions") or ()}
        listener = (status.get("listeners") or [{}])[0]
        address = [one["value"] for one in status.get("addresses") or ()]
        return (
            good.get("Programmed") == "True"
            and listener.get("attachedRoutes") == 1
            and address == [f"router-default.{DOMAIN}"]
        )

    await eventually(told, "the Gateway says where, and how many routes it has")
    classes = await world.client.get(r.GATEWAYCLASSES, "hcp")
    assert {one["type"]: one["status"] for one in classes["status"]["conditions"]}["Accepted"] == "True"
    await world.client.delete(r.HTTPROUTES, "shop", world.namespace)
    await answers(world, host, "/", 503)


async def test_tls_ends_with_the_certificate_of_the_listener_and_http_is_redirected(world: World) -> None:
    await services(world, "web")
    await secret(world.client, world.namespace, "own", OTHER, "web.example.com")
    await world.client.apply(gateway(world, HTTP, https("own")))
    redirect = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}
    host = "web.example.com"
    plain = {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "filters": [redirect]}
    await world.client.apply(httproute(world, "plain", [host], plain, section="http"))
    await world.client.apply(httproute(world, "secure", [host], rule("web"), section="https"))

    async def served() -> bool:
        return (await world.https(host, trust=OTHER.cert_pem.decode()))[2] == "web"

    await eventually(served, "with the certificate of the listener")
    await answers(world, host, "/x", 301)
    assert f"location: https://{host}/x" in (await world.http(host, "/x"))[1].lower()


async def test_weights_paths_and_timeouts(world: World) -> None:
    await services(world, "blue", "green")
    await world.client.apply(gateway(world, HTTP))
    refs = [{"name": "blue", "port": 443, "weight": 1}, {"name": "green", "port": 443, "weight": 0}]
    await world.client.apply(
        httproute(world, "w", [f"w.{DOMAIN}"], {"backendRefs": refs, "timeouts": {"request": "30s"}})
    )
    await answers(world, f"w.{DOMAIN}", "/", "blue")
    assert {(await world.http(f"w.{DOMAIN}"))[2] for _ in range(10)} == {"blue"}
    refs[1]["weight"] = 1
    await world.client.apply(httproute(world, "w", [f"w.{DOMAIN}"], {"backendRefs": refs}))
    await answers(world, f"w.{DOMAIN}", "/", "green")


async def test_tls_is_passed_on(world: World) -> None:
    await world.service("raw", await world.backend("raw"))
    listener = {"name": "tls", "protocol": "TLS", "port": 443, "tls": {"mode": "Passthrough"}}
    await world.client.apply(gateway(world, listener))
    body = httproute(world, "raw", [f"raw.{DOMAIN}"], {"backendRefs": [{"name": "raw", "port": 443}]})
    await world.client.apply({**body, "kind": "TLSRoute"})
    await world.reaches(f"raw.{DOMAIN}", "raw")


async def test_other_namespaces_are_let_in_and_reached_only_where_permitted(world: World) -> None:
    await services(world, "web")
    other = await world.other_namespace()
    await world.service("theirs", await world.backend("theirs", tls=False), ns=other)
    await world.client.apply(gateway(world, HTTP))
    await world.client.apply(httproute(world, "guest", [f"guest.{DOMAIN}"], rule("theirs"), ns=other))
    await condition(world, "guest", "Accepted", "NotAllowedByListeners", other)
    await world.client.apply(gateway(world, {**HTTP, "allowedRoutes": {"namespaces": {"from": "All"}}}))
    await answers(world, f"guest.{DOMAIN}", "/", "theirs")
    # A backend in a namespace that says nothing about it.
    reach = {"backendRefs": [{"name": "theirs", "namespace": other, "port": 443}]}
    await world.client.apply(httproute(world, "reach", [f"reach.{DOMAIN}"], reach))
    await condition(world, "reach", "ResolvedRefs", "RefNotPermitted")
    await answers(world, f"reach.{DOMAIN}", "/", 500)
    grant = {
        "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": world.namespace}],
        "to": [{"group": "", "kind": "Service"}],
    }
    meta = {"name": "grant", "namespace": other}
    await world.client.apply(
        {"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": meta, "spec": grant}
    )
    await answers(world, f"reach.{DOMAIN}", "/", "theirs")
    # Who came first keeps the host, whatever kind it is of.
    await world.client.apply(httproute(world, "thief", [f"guest.{DOMAIN}"], rule("web")))
    await condition(world, "thief", "Accepted", "HostAlreadyClaimed")
    await answers(world, f"guest.{DOMAIN}", "/", "theirs")


async def test_what_is_not_served_says_so(world: World) -> None:
    await services(world, "web")
    await world.client.apply(gateway(world, HTTP, {"name": "odd", "protocol": "HTTP", "port": 8080}, https("none")))
    by_header = rule("web")
    by_header["matches"][0]["headers"] = [{"name": "x-version", "value": "2.*", "type": "RegularExpression"}]
    await world.client.apply(httproute(world, "header", [f"h.{DOMAIN}"], by_header))
    await condition(world, "header", "Accepted", "UnsupportedValue")
    await world.client.apply(httproute(world, "absent", [f"a.{DOMAIN}"], rule("nobody")))
    await condition(world, "absent", "ResolvedRefs", "BackendNotFound")
    await world.client.apply(httproute(world, "odd", [f"o.{DOMAIN}"], rule("web"), section="odd"))
    await condition(world, "odd", "Accepted", "NoMatchingParent")
    live = await world.client.get(r.GATEWAYS, "web", world.namespace)
    found = {
        one["name"]: {each["reason"] for each in one["conditions"] if each["status"] == "False"}
        for one in live["status"]["listeners"]
    }
    assert found == {
        "http": set(),
        "odd": {"PortUnavailable", "Invalid"},
        "https": {"InvalidCertificateRef", "Invalid"},
    }
    # Commands for HAProxy in a path are refused by the kind, and once more by us where another kind lets them in.
    await world.client.apply(httproute(world, "any", [], rule("web")))
    await condition(world, "any", "Accepted", "NoHost")
    # One of two hosts: what is served is, and the rest is told.
    other = await world.other_namespace()
    listener = {**HTTP, "allowedRoutes": {"namespaces": {"from": "All"}}}
    await world.client.apply(gateway(world, listener))
    await world.client.apply(httproute(world, "first", [f"mine.{DOMAIN}"], rule("web")))
    await answers(world, f"mine.{DOMAIN}", "/", "web")
    await world.service("their", await world.backend("their", tls=False), ns=other)
    hosts = [f"mine.{DOMAIN}", f"theirs.{DOMAIN}"]
    await world.client.apply(httproute(world, "second", hosts, rule("their"), ns=other))
    await answers(world, f"theirs.{DOMAIN}", "/", "their")
    await condition(world, "second", "Accepted", "Accepted", other)
    await condition(world, "second", "PartiallyInvalid", "HostAlreadyClaimed", other)


async def test_requests_are_told_apart_by_method_headers_and_query(world: World) -> None:
    await services(world, "one", "two", "both", "rest", "deep")
    host = f"which.{DOMAIN}"
    await world.client.apply(gateway(world, {**HTTP, "hostname": host}))

    def when(service: str, path: str = "/", **wanted: Any) -> dict[str, Any]:
        place = {"path": {"type": "PathPrefix", "value": path}}
        return {"matches": [{**place, **wanted}], "backendRefs": [{"name": service, "port": 443}]}

    version = {"name": "Version", "value": "two words; 100%"}
    rules = (
        when("one", method="POST"),
        when("two", headers=[version]),
        when("both", headers=[version, {"name": "color", "value": "blue"}]),
        when("both", queryParams=[{"name": "a~b", "value": "1&2 3"}]),
        when("deep", path="/deep"),
    )
    await world.client.apply(httproute(world, "which", [host], *rules))
    # Another route of the same host has the rest.
    await world.client.apply(httproute(world, "rest", [host], when("rest", path="/rest")))
    header = "version: two words; 100%"
    wanted: dict[tuple[str, ...], str | int] = {
        ("/", "POST"): "one",
        ("/", "GET", header): "two",
        ("/", "GET", header, "COLOR: blue"): "both",
        ("/", "GET", header, "color: red"): "two",
        ("/?c=d&a~b=1%262+3", "GET"): "both",
        ("/?a~b=1", "GET"): 404,
        ("/", "GET"): 404,
        ("/deep/er", "POST", header): "deep",
        ("/deeper", "POST"): "one",
        ("/rest", "GET", header): "rest",
    }
    for (path, *more), answer in wanted.items():
        await answers(world, host, path, answer, *more)
    # A host that looks like a row of the table leads nowhere.
    assert (await world.http("?", "/"))[0] == 503
    # A process that is started anew reads the tables, and the script does.
    assert world.process.pid is not None
    os.kill(world.process.pid, signal.SIGKILL)
    await answers(world, host, "/", "two", "GET", header)
    await world.client.apply(httproute(world, "which", [host], when("one")))
    for path, answer in {"/": "one", "/rest": "rest"}.items():
        await answers(world, host, path, answer, "GET", header)


async def test_headers_and_paths_are_changed_on_their_way(world: World) -> None:
    await world.service("told", await world.backend("told", tls=False, told=True))
    await world.client.apply(gateway(world, HTTP))
    request = {
        "set": [{"name": "X-Set", "value": "a, b=c & 100% | d"}],
        "add": [{"name": "X-Added", "value": "2"}],
        "remove": ["X-Gone"],
    }
    answer = {"set": [{"name": "X-New", "value": "y"}], "remove": ["X-Old"]}
    rewrite = {"hostname": "inner.test", "path": {"type": "ReplaceFullPath", "replaceFullPath": "/new%20place"}}
    filters = [
        {"type": "RequestHeaderModifier", "requestHeaderModifier": request},
        {"type": "ResponseHeaderModifier", "responseHeaderModifier": answer},
        {"type": "URLRewrite", "urlRewrite": rewrite},
    ]
    host = f"changed.{DOMAIN}"
    await world.client.apply(httproute(world, "changed", [host], rule("told", path="/old", filters=filters)))
    await answers(world, host, "/old/x", 200)
    _, head, body = await world.http(host, "/old/x?q=1", "GET", "x-set: was", "x-added: 1", "x-gone: 1")
    lines = body.lower().splitlines()
    assert lines[0] == "get /new%20place?q=1 http/1.1"
    assert {"host: inner.test", "x-set: a, b=c & 100% | d", "x-added: 1", "x-added: 2"} <= set(lines)
    assert not [line for line in lines if line.startswith("x-gone")]
    assert "x-new: y" in head.lower()
    assert "x-old" not in head.lower()


async def test_redirects_lead_where_they_say(world: World) -> None:
    await world.client.apply(gateway(world, HTTP))
    host = f"moved.{DOMAIN}"

    def moved(place: str, **given: Any) -> dict[str, Any]:
        filters = [{"type": "RequestRedirect", "requestRedirect": given}]
        return {"matches": [{"path": {"type": "PathPrefix", "value": place}}], "filters": filters}

    rules = (
        moved("/host", hostname="example.org"),
        moved("/port", port=8083, statusCode=308),
        moved("/all", scheme="https", hostname="example.org", port=444, statusCode=301),
        moved("/prefix/old", path={"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"}),
        moved("/whole", path={"type": "ReplaceFullPath", "replaceFullPath": "/there"}),
        moved("/none", path={"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}),
    )
    await world.client.apply(httproute(world, "moved", [host], *rules))
    wanted = {
        "/host/x?y=1": (302, "http://example.org/host/x?y=1"),
        "/port": (308, f"http://{host}:8083/port"),
        "/all/x": (301, "https://example.org:444/all/x"),
        "/prefix/old/x": (302, f"http://{host}/new/x"),
        "/whole/x?y=1": (302, f"http://{host}/there?y=1"),
        "/none": (302, f"http://{host}/"),
        "/none/x": (302, f"http://{host}/x"),
    }
    for path, (code, where) in wanted.items():
        await answers(world, host, path, code)
        assert f"location: {where}\r\n" in (await world.http(host, path))[1].lower() + "\r\n"


async def test_what_nobody_serves_is_told_apart(world: World) -> None:
    await services(world, "web")
    await world.service("idle")
    listener = {**HTTP, "hostname": f"*.gate.{DOMAIN}"}
    await world.client.apply(gateway(world, listener))
    host = f"a.gate.{DOMAIN}"
    rules = (rule("web"), rule("idle", path="/idle"), rule("absent", path="/absent"), rule(path="/none"))
    await world.client.apply(httproute(world, "web", [host], *rules))
    for path, code in {"/": 200, "/idle": 503, "/absent/x": 500, "/none": 500}.items():
        await answers(world, host, path, code)
    await answers(world, f"other.gate.{DOMAIN}", "/", 404)
    await answers(world, f"x.y.gate.{DOMAIN}", "/", 404)
    assert (await world.http(f"gate.{DOMAIN}"))[0] == 503, "no listener waits for it"


async def test_a_wildcard_of_a_gateway_is_any_number_of_labels(world: World) -> None:
    await services(world, "web")
    await world.service("raw", await world.backend("raw"))
    passing = {"name": "tls", "protocol": "TLS", "port": 443, "tls": {"mode": "Passthrough"}}
    await world.client.apply(gateway(world, HTTP, passing))
    await world.client.apply(httproute(world, "web", ["*.deep.test"], rule("web")))
    body = httproute(world, "raw", ["*.raw.test"], {"backendRefs": [{"name": "raw", "port": 443}]}, section="tls")
    await world.client.apply({**body, "kind": "TLSRoute"})
    for name in ("a", "a.b", "a.b.c.d"):
        await answers(world, f"{name}.deep.test", "/", "web")
        await world.reaches(f"{name}.raw.test", "raw")
    assert (await world.http("deep.test"))[0] == 503
    # Not where that would be all names of the cluster's own domain.
    above = DOMAIN.partition(".")[2]
    await world.client.apply(httproute(world, "above", [f"*.{above}"], rule("web")))
    await answers(world, f"one.{above}", "/", "web")
    assert (await world.http(f"x.{DOMAIN}"))[0] == 503


async def test_tls_for_which_there_is_no_route_is_closed(world: World) -> None:
    passing = {"name": "tls", "protocol": "TLS", "port": 443, "tls": {"mode": "Passthrough"}, "hostname": "*.raw.test"}
    await world.client.apply(gateway(world, passing))
    body = httproute(world, "raw", ["a.raw.test"], {"backendRefs": [{"name": "absent", "port": 443}]})
    await world.client.apply({**body, "kind": "TLSRoute"})

    async def closed() -> bool:
        for host in ("a.raw.test", "b.raw.test", "x.y.raw.test"):
            with contextlib.suppress(OSError, ssl.SSLError, IndexError):
                await world.https(host)
                return False
        return True

    await eventually(closed, "names that the listener waits for are closed")
    assert (await world.https("b.other.test"))[0] == 503


async def test_for_names_that_nobody_has_a_permitted_gateway_shows_its_certificate(world: World) -> None:
    await services(world, "web")
    await secret(world.client, world.namespace, "own", OTHER, "odd.test")
    await world.client.apply(gateway(world, https("own")))
    await world.client.apply(httproute(world, "web", ["known.test"], rule("web")))

    async def shown(host: str, authority: pki.KeyPair, code: int) -> bool:
        return (await world.https(host, trust=authority.cert_pem.decode()))[0] == code

    await eventually(lambda: shown(f"x.{DOMAIN}", CA, 503), "the default certificate")
    annotations = {"hcp.openshift.io/any-host": "true"}
    await world.client.apply(
        {
            "apiVersion": API,
            "kind": "GatewayClass",
            "metadata": {"name": "hcp", "annotations": annotations},
            "spec": {"controllerName": CONTROLLER},
        }
    )
    await eventually(lambda: shown("odd.test", OTHER, 404), "that of the listener, and no route has the name")
    assert await shown(f"x.{DOMAIN}", CA, 404), "names of the cluster keep their own"


async def test_nothing_more_is_written_once_all_is_said(world: World) -> None:
    await services(world, "web")
    await world.client.apply(gateway(world, HTTP))
    await world.client.apply(httproute(world, "web", [f"web.{DOMAIN}"], rule("web")))
    await answers(world, f"web.{DOMAIN}", "/", "web")
    await condition(world, "web", "Accepted", "Accepted")

    async def versions() -> list[str]:
        kinds = (r.GATEWAYCLASSES, r.GATEWAYS, r.HTTPROUTES)
        return [one["metadata"]["resourceVersion"] for kind in kinds for one in await world.client.list(kind)]

    seen: list[list[str]] = []

    async def rests() -> bool:
        seen.append(await versions())
        await services(world, f"other-{len(seen)}")
        return len(seen) > 4 and seen[-1] == seen[-2] == seen[-3]

    await eventually(rests, "a pass that finds all said writes nothing")
