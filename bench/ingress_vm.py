"""Requests through both routers and a virtual machine, against HAProxy by hand on the same path, in one run.

    sudo .venv/bin/python bench/ingress_vm.py --kubeconfig FILE --name CLUSTER [--namespace clusters] [--rounds 16]
        [--seconds 3] [--connections 32]

The hosted cluster has the default ingress (docs/router.md) below the domain of its management cluster, and nodes. Asked
is the canary, as anybody outside asks an app: TLS through the management cluster's router to a node port of a machine,
ended by the router inside, to a pod. By hand: a HAProxy beside the first router that passes on one name, and one beside
the second, on its node, that ends TLS with the same certificate for one host; first one that could pass another name on
from the same port, as the router does, then one that can not. Both ways lead to the same machines and pods; they are
asked in turns. All that was made for it goes away again.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.wrk import HEAD, ask, compare

from hcp import payload
from hcp.api.names import ROUTER_NAMESPACE
from hcp.guest import canary, ingress
from hcp.kube import Client, load_config, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.kube.follow import follow
from hcp.router import manifests

NAME = "by-hand"
LABELS = {"app": NAME}
PORT = 8443
LIMIT = 600.0
_DEFAULTS = """global
  maxconn 4000
defaults
  timeout connect 5s
  timeout client 1m
  timeout server 1m
"""

Object = dict[str, Any]


def passing_on(host: str, machines: list[str]) -> str:
    """What somebody would write who has one name to pass on."""
    servers = "".join(f"  server machine-{number} {where}\n" for number, where in enumerate(machines))
    return f"""{_DEFAULTS}
frontend names
  mode tcp
  bind :{PORT}
  tcp-request inspect-delay 5s
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  use_backend machines if {{ req.ssl_sni -i {host} }}
backend machines
  mode tcp
  balance random
{servers}"""


def ending(host: str, pods: list[str], beside: bool) -> str:
    """What somebody would write who serves one host, and passes another one on `beside` it."""
    servers = "".join(f"  server pod-{number} {where}\n" for number, where in enumerate(pods))
    names = f"""
frontend names
  mode tcp
  bind :{PORT}
  tcp-request inspect-delay 5s
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  use_backend pods if {{ req.ssl_sni -i passed-on.{host} }}
  default_backend inner
backend inner
  mode tcp
  server inner abns@inner send-proxy-v2"""
    return f"""{_DEFAULTS}{names if beside else ""}
frontend https
  mode http
  bind {"abns@inner accept-proxy" if beside else f":{PORT}"} ssl crt /etc/by-hand/tls.pem alpn http/1.1
  option forwardfor
  http-request set-header X-Forwarded-Proto https
  http-request set-header X-Forwarded-Port 443
  use_backend web if {{ req.hdr(host),field(1,:) -i {host} }}
backend web
  mode http
  balance random
{servers}backend pods
  mode tcp
{servers}"""


def objects(image: str, kind: str, files: dict[str, str], node: str = "") -> list[Object]:
    meta = {"name": NAME, "namespace": ROUTER_NAMESPACE}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
    container: Object = {
        "name": NAME,
        "image": image,
        "command": ["haproxy", "-db", "-f", "/etc/by-hand/haproxy.cfg"],
        "readinessProbe": {"tcpSocket": {"port": PORT}},
        "volumeMounts": [{"name": "files", "mountPath": "/etc/by-hand"}],
    }
    pod: Object = {
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [{"name": "files", "secret": {"secretName": NAME}}],
    }
    if node:
        pod["nodeName"] = node
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "labels": LABELS}, "spec": pod},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"type": kind, "selector": LABELS, "ports": [{"name": "https", "port": 443, "targetPort": PORT}]},
        },
    ]


@contextlib.asynccontextmanager
async def made(client: Client, wanted: list[Object], there: Callable[[Object], str]) -> AsyncIterator[str]:
    """These objects while their pod runs; gives what is read from the Service."""
    await _gone(client)
    try:
        for one in wanted:
            await client.create(one)
        await _until(client, k.PODS, _ready)
        yield await _until(client, k.SERVICES, there)
    finally:
        await _gone(client)


async def _gone(client: Client) -> None:
    for resource in (k.SERVICES, k.PODS, k.SECRETS):
        await client.delete(resource, NAME, ROUTER_NAMESPACE, missing_ok=True)
    await _until(client, k.PODS, lambda one: "" if one else "gone")


async def _until(client: Client, resource: k.Resource, found: Callable[[Any], str]) -> str:
    async with asyncio.timeout(LIMIT), aclosing(follow(client, resource, NAME, ROUTER_NAMESPACE)) as changes:
        async for one in changes:
            if said := found(one):
                return said
    raise AssertionError("follow never ends")


def _ready(pod: Object | None) -> str:
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    return "ready" if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions) else ""


def _node_port(service: Object | None) -> str:
    return str((service or {"spec": {"ports": [{}]}})["spec"]["ports"][0].get("nodePort") or "")


def _balancer(service: Object | None) -> str:
    return str(
        ((((service or {}).get("status") or {}).get("loadBalancer") or {}).get("ingress") or [{}])[0].get("ip") or ""
    )


@dataclass(frozen=True)
class Known:
    """What is there before anything is made."""

    domain: str
    # Addresses of the machines, and what runs in them.
    machines: list[str]
    pods: list[str]
    node: str
    image: str
    pem: str
    first_image: str
    first_address: str

    @property
    def host(self) -> str:
        return canary.host(self.domain)


async def look(management: Client, guest: Client, hosted: str) -> Known:
    secret = await guest.get(k.SECRETS, ingress.CERTIFICATE, ROUTER_NAMESPACE)
    pem = "".join(base64.b64decode(secret["data"][key]).decode() for key in ("tls.crt", "tls.key"))
    labels = ",".join(f"{key}={value}" for key, value in manifests.POD_LABELS.items())
    (router, *_) = await guest.list(k.PODS, ROUTER_NAMESPACE, labels)
    canaries = await guest.list(k.PODS, canary.NAMESPACE)
    machines = await management.list(k.VMIS, hosted)
    first = await management.get(k.DEPLOYMENTS, manifests.NAME, ROUTER_NAMESPACE)
    front = await management.get(k.SERVICES, manifests.NAME, ROUTER_NAMESPACE)
    route = await guest.get(k.ROUTES, canary.ROUTE, canary.NAMESPACE)
    return Known(
        domain=route["spec"]["host"].partition(".")[2],
        machines=[one["status"]["interfaces"][0]["ipAddress"] for one in machines],
        pods=[f"{one['status']['podIP']}:{canary.PORT}" for one in canaries],
        node=router["spec"]["nodeName"],
        image=router["spec"]["containers"][0]["image"],
        pem=pem,
        first_image=first["spec"]["template"]["spec"]["containers"][0]["image"],
        first_address=_balancer(front),
    )


def asking(wrk: str, folder: Path, address: str, host: str) -> list[str]:
    """wrk where this host has this address, and nothing else is changed."""
    hosts = folder / f"hosts-{address}"
    hosts.write_text(f"127.0.0.1 localhost\n{address} {host}\n")
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(hosts), wrk]


async def run(options: argparse.Namespace) -> None:
    wrk = str(payload.ensure(["wrk"])["wrk"] / "bin" / "wrk")
    hosted = f"{options.namespace}-{options.name}"
    async with Client(load_config(options.kubeconfig)) as management:
        found = await management.get(k.SECRETS, f"{options.name}-admin-kubeconfig", options.namespace)
        config = untrusted_kubeconfig.load(base64.b64decode(found["data"]["kubeconfig"]))
        async with Client(config) as guest:
            known = await look(management, guest, hosted)
            print(f"{known.host}: {len(known.machines)} machines, the router inside is on {known.node}")
            print(HEAD)
            for name, beside in (("names looked at first", True), ("no passthrough beside", False)):
                files = {"tls.pem": known.pem, "haproxy.cfg": ending(known.host, known.pods, beside)}
                inside = objects(known.image, "NodePort", files, known.node)
                async with made(guest, inside, _node_port) as port:
                    ways = [f"{machine}:{port}" for machine in known.machines]
                    outside = objects(known.first_image, "LoadBalancer", {"haproxy.cfg": passing_on(known.host, ways)})
                    async with made(management, outside, _balancer) as address:
                        await asyncio.to_thread(measure, options, wrk, known, address, name)


def _listens(address: str, host: str) -> None:
    """Addresses are announced before packets are led from them, on every machine by itself: until many get through."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    end, good = time.monotonic() + LIMIT, 0
    while good < 20:
        if time.monotonic() > end:
            raise SystemExit(f"not everybody answers at {address}")
        try:
            with socket.create_connection((address, 443), 5) as plain, context.wrap_socket(plain, server_hostname=host):
                good += 1
        except OSError:
            good = 0
            time.sleep(0.2)


def measure(options: argparse.Namespace, wrk: str, known: Known, by_hand: str, name: str) -> None:
    url = f"https://{known.host}/"
    _listens(by_hand, known.host)
    with tempfile.TemporaryDirectory(prefix="hcp-bench-") as text:
        hand, ours = (
            partial(ask, asking(wrk, Path(text), address, known.host), url, options.connections, options.seconds)
            for address in (by_hand, known.first_address)
        )
        print(compare(hand, ours, options.rounds).row(f"HTTPS, {name}"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--namespace", default="clusters")
    for name, default in (("rounds", 16), ("seconds", 3), ("connections", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
