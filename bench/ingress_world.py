"""What the benchmark of the router needs around it: an API server, pods, a HAProxy by hand, and objects."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.api_server import ApiServer, binaries
from tests.support.router import own_address

from hcp import pki
from hcp.kube import Client, load_config
from hcp.local.network.ports import free_ports
from hcp.router.crd import route_crd
from hcp.router.maps import HTTP, HTTPS

NAMESPACE = "bench"
POD_PORTS = free_ports(3)
POD_NAMES = ("pod", "first", "second")
# Who may come where it is asked, and how many requests: more than there are.
GUESTS, MANY = "127.0.0.0/8 10.0.0.0/8", 100_000_000
# What Routes ask for by annotations, by the first element of their path.
_PREFIX = "haproxy.router.openshift.io/"
ASKED: dict[str, dict[str, str]] = {
    "timeout": {f"{_PREFIX}timeout": "30s"},
    "guarded": {
        f"{_PREFIX}timeout": "30s",
        f"{_PREFIX}ip_allowlist": GUESTS,
        f"{_PREFIX}rate-limit-connections": "true",
        f"{_PREFIX}rate-limit-connections.concurrent-tcp": str(MANY),
        f"{_PREFIX}rate-limit-connections.rate-http": str(MANY),
    },
}


@functools.cache
def authority() -> pki.KeyPair:
    return pki.new_ca("bench")


def leaf() -> tuple[bytes, bytes]:
    made = pki.issue(authority(), "localhost", dns=("localhost", "*.bench.test"), usage="server")
    return made.cert_pem, made.key_pem


def certificate(name: str) -> dict[str, Any]:
    pair = dict(zip(("tls.crt", "tls.key"), leaf(), strict=True))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {key: base64.b64encode(value).decode() for key, value in pair.items()},
    }


_DEFAULTS = """global
  maxconn 4000
defaults
  mode http
  timeout connect 2s
  timeout client 1m
  timeout server 1m
"""


def pods() -> str:
    """Each answers with its name; as fast as HAProxy, so that it is not what is measured."""
    parts = [
        f"frontend {name}\n  bind 0.0.0.0:{port}\n"
        f"  http-request return status 200 content-type text/plain string {name}\n"
        for name, port in zip(POD_NAMES, POD_PORTS, strict=True)
    ]
    return _DEFAULTS + "".join(parts)


def by_hand(directory: Path, plain: int, ended: int, direct: int) -> str:
    """As somebody would write it for one host: plain HTTP; TLS beside passthrough on one port; TLS alone."""
    (directory / "hand.pem").write_bytes(b"".join(leaf()))
    ssl, inner = f"ssl crt {directory}/hand.pem alpn http/1.1", f"unix@{directory}/hand.sock"
    return f"""{_DEFAULTS}
frontend http
  bind 127.0.0.1:{plain}
  option forwardfor
  http-request set-header X-Forwarded-Proto http
  use_backend guarded if {{ req.hdr(host),field(1,:) -i localhost }} {{ path_beg /guarded }}
  use_backend web if {{ req.hdr(host),field(1,:) -i localhost }}
frontend names
  mode tcp
  bind 127.0.0.1:{ended}
  tcp-request inspect-delay 5s
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  use_backend through if {{ req.ssl_sni -i raw.bench.test }}
  default_backend inner
backend through
  mode tcp
  server raw {own_address()}:{POD_PORTS[0]}
backend inner
  mode tcp
  server inner {inner} send-proxy-v2
frontend https
  bind {inner} accept-proxy {ssl}
  bind 127.0.0.1:{direct} {ssl}
  option forwardfor
  http-request set-header X-Forwarded-Proto https
  http-request set-header X-Forwarded-Port 443
  use_backend web if {{ req.hdr(host),field(1,:) -i localhost }}
backend web
  server pod {own_address()}:{POD_PORTS[0]}
backend guarded
  timeout server 30s
  stick-table type ip size 100k expire 30s store conn_cur,http_req_rate(3s)
  http-request deny unless {{ src {GUESTS} }}
  http-request track-sc0 src
  http-request deny deny_status 429 if {{ sc_conn_cur(0) gt {MANY} }} or {{ sc_http_req_rate(0) gt {MANY} }}
  server pod {own_address()}:{POD_PORTS[0]}
"""


@dataclass(frozen=True)
class Running:
    """`hcp router run` on an API server of its own."""

    pid: int
    http: int
    https: int
    kubeconfig: str

    @property
    def haproxy(self) -> int:
        """It starts one program."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()[0])


async def _prepare(kubeconfig: Path) -> None:
    async with Client(load_config(kubeconfig)) as client:
        await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await client.apply(route_crd())
        await client.apply(certificate("default-cert"))
        for _ in range(100):
            client_seen = await client.raw_text("GET", "/apis")
            if "route.openshift.io" in client_seen:
                return
            await asyncio.sleep(0.1)


@contextlib.contextmanager
def router(directory: Path, haproxy: str) -> Iterator[Running]:
    links = directory / "bin"
    links.mkdir()
    server = ApiServer(directory, binaries(links))
    server.start()
    try:
        asyncio.run(_prepare(server.kubeconfig))
        with another(directory, haproxy, str(server.kubeconfig)) as running:
            asyncio.run(_there(running.http))
            yield running
    finally:
        server.stop()


@contextlib.contextmanager
def another(directory: Path, haproxy: str, kubeconfig: str) -> Iterator[Running]:
    """A router on an API server that is there."""
    http, https, health = free_ports(3)
    command = [str(Path(sys.executable).parent / "hcp"), "router", "run", "--domain=bench.test"]
    command += [f"--http-port={http}", f"--https-port={https}", f"--health-port={health}", f"--haproxy={haproxy}"]
    command += [f"--default-certificate={NAMESPACE}/default-cert", "--ingress-class=openshift-default"]
    command += ["--max-connections=25000", f"--kubeconfig={kubeconfig}"]
    with (directory / f"router-{http}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ})
    try:
        yield Running(process.pid, http, https, kubeconfig)
    finally:
        process.terminate()
        process.wait()


async def _there(port: int) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError):
            if " 200 " in await _get(port, "localhost", "/_router/healthz"):
                return
        await asyncio.sleep(0.2)
    raise SystemExit("the router does not start")


async def _get(port: int, host: str, path: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    said = (await reader.read()).decode()
    writer.close()
    return said


async def answered(port: int, host: str, wanted: str, path: str = "/") -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with contextlib.suppress(ConnectionError):
            if (await _get(port, host, path)).endswith(f"\r\n\r\n{wanted}"):
                return
        await asyncio.sleep(0.005)
    raise SystemExit(f"{host}{path} is not answered by {wanted}")


async def listed(running: Running, host: str) -> None:
    """Whether a name is known, without asking for it: whoever answers there may take its time."""
    folder = Path(f"/proc/{running.haproxy}/cwd")  # where it keeps its files
    for _ in range(600):
        tables = [await _said(folder, f"show map {name}.map") for name in (HTTP, HTTPS)]
        if all(f" {host}/ " in table for table in tables):
            return
        await asyncio.sleep(0.1)
    raise SystemExit(f"{host} is not served")


async def _said(folder: Path, command: str) -> str:
    reader, writer = await asyncio.open_unix_connection(str(folder / "haproxy.sock"))
    writer.write(f"{command}\n".encode())
    said = (await reader.read()).decode()
    writer.close()
    return said


async def service(client: Client, name: str, port: int) -> None:
    meta = {"name": name, "namespace": NAMESPACE}
    await client.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [{"name": "web", "port": 80}]}}
    )
    await client.apply(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"name": "web", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
        }
    )


def route(name: str, target: str, host: str) -> dict[str, Any]:
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "host": host,
            "to": {"kind": "Service", "name": target},
            "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Allow"},
        },
    }
