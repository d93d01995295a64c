"""A real proxy with a password and no other way out: commands, the registries of the operator, containerd of a node."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.api_server import ApiServer
from tests.support.containerd import containerd
from tests.support.proxy import Proxy, running
from tests.support.registry import Registry, push, start

from hcp import payload
from hcp.ignition.document import read_data_url
from hcp.ignition.mirrors import registry_texts
from hcp.ignition.node import NodeInput, node_document
from hcp.ignition.pointer import Proxy as NodeProxy
from hcp.oci.writer import read_layout

API, REGISTRY = "api.example.com", "registry.example.com"
ASK_API = """
import asyncio, sys
from hcp.errors import HcpError
from hcp.kube import Client, load_config
from hcp.kube.resources import NAMESPACES

async def main():
    async with Client(load_config(sys.argv[1])) as client:
        print(sorted(n["metadata"]["name"] for n in await client.list(NAMESPACES)))
        async with asyncio.timeout(120):
            async for event in client.watch(NAMESPACES):
                print("watched", event)
                break

try:
    asyncio.run(main())
except HcpError as error:
    print("REFUSED", error, error.cause, error.hint)
"""
ASK_REGISTRY = """
import asyncio, json, ssl, sys
from hcp.errors import HcpError
from hcp.http_proxy import Proxies
from hcp.oci import realm
from hcp.oci.address_policy import AddressPolicy
from hcp.oci.pool import RegistryPool

async def main():
    given = json.loads(sys.argv[1])
    policy = AddressPolicy(guarded=True, inside=lambda: ["10.0.0.0/8"])
    async with RegistryPool() as pool:
        client = pool.get(given["auths"], given["ca"], address_policy=policy)
        for image in given["images"]:
            try:
                print(image, await client.digest(image))
            except HcpError as error:
                print(image, "REFUSED", error, error.cause)
    host, port = given["registry"]
    proxy = Proxies.of(__import__("os").environ).for_url(f"https://{host}:{port}")
    if proxy:
        context = ssl.create_default_context(cadata=given["ca"])
        found = await realm.certificate_through(proxy, host, port, context)
        print("CERTIFICATE", realm.covers(found, host), realm.covers(found, "other.example.com"))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("proxy"), API, REGISTRY) as found:
        yield found


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    found, process = start(tmp_path_factory.mktemp("registry"), passwords=False, names=(REGISTRY,))
    yield found
    process.kill()
    process.wait()


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def run_inside(proxy: Proxy, program: str, argument: str, **environment: str) -> str:
    done = subprocess.run(
        [*proxy.inside, sys.executable, "-c", program, argument],
        env={**clean(), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def kubeconfig(folder: Path, server: ApiServer, **cluster: str) -> tuple[str, str]:
    """The administrator's, by a name that only the proxy knows; the path, and the place behind the proxy."""
    data = yaml.safe_load(server.kubeconfig.read_text())
    port = data["clusters"][0]["cluster"]["server"].rpartition(":")[2]
    data["clusters"][0]["cluster"] |= {"server": f"https://{API}:{port}", "tls-server-name": "localhost", **cluster}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(data))
    return str(path), f"{API}:{port}"


def test_a_kubeconfig_with_a_proxy_reaches_an_api_server_behind_it(
    tmp_path: Path, proxy: Proxy, shared_server: ApiServer
) -> None:
    path, place = kubeconfig(tmp_path, shared_server, **{"proxy-url": proxy.url})
    said = run_inside(proxy, ASK_API, path)
    assert "'kube-system'" in said and "watched" in said and proxy.asked_for(place)


def test_without_it_nothing_is_reached_and_without_its_password_one_is_told(
    tmp_path: Path, proxy: Proxy, shared_server: ApiServer
) -> None:
    path, _ = kubeconfig(tmp_path, shared_server)
    assert "REFUSED" in run_inside(proxy, ASK_API, path)
    path, _ = kubeconfig(tmp_path, shared_server, **{"proxy-url": proxy.without_login})
    said = run_inside(proxy, ASK_API, path)
    assert "REFUSED" in said and "407" in said and "user:password" in said


def test_the_environments_proxy_is_followed_and_its_exceptions_too(
    tmp_path: Path, proxy: Proxy, shared_server: ApiServer
) -> None:
    path, place = kubeconfig(tmp_path, shared_server)
    before = proxy.asked_for(place)
    assert "'kube-system'" in run_inside(proxy, ASK_API, path, HTTPS_PROXY=proxy.url)
    after = proxy.asked_for(place)
    assert after > before
    assert "REFUSED" in run_inside(proxy, ASK_API, path, HTTPS_PROXY=proxy.url, NO_PROXY=".example.com")
    assert proxy.asked_for(place) == after, "whom NO_PROXY names is asked directly, or not at all"


async def test_the_operator_reads_images_through_it_and_still_none_from_inside(
    proxy: Proxy, registry: Registry
) -> None:
    image = payload.ensure(["image-pause"])["image-pause"] / "image"
    await push(registry, image, "hcp/pause", "1")
    outside = f"{REGISTRY}:{registry.port}/hcp/pause:1"
    inside = [f"10.1.2.3:{registry.port}/hcp/pause:1", f"169.254.169.254:{registry.port}/hcp/pause:1"]
    own = f"localhost:{registry.port}/hcp/pause:1"
    given = {"auths": {}, "ca": registry.ca_pem.decode(), "registry": [REGISTRY, registry.port]}
    asked = json.dumps({**given, "images": [outside, *inside, own]})
    said = run_inside(proxy, ASK_REGISTRY, asked, HTTPS_PROXY=proxy.url)
    lines = {line.split(" ")[0]: line for line in said.splitlines()}
    assert read_layout(image).digest in lines[outside]
    for name in (*inside, own):
        assert "REFUSED" in lines[name] and "address" in lines[name]
    assert proxy.asked_for("10.1.2.3") == proxy.asked_for(f"10.1.2.3:{registry.port}") == 0
    assert lines["CERTIFICATE"] == "CERTIFICATE True False"
    assert "REFUSED" in run_inside(proxy, ASK_REGISTRY, json.dumps({**given, "images": [outside]}))


async def test_a_nodes_containerd_pulls_through_it(tmp_path: Path, proxy: Proxy, registry: Registry) -> None:
    await push(registry, payload.ensure(["image-pause"])["image-pause"] / "image", "hcp/pause", "2")
    host = f"{REGISTRY}:{registry.port}"
    for path, text in registry_texts([], {host: registry.ca_pem.decode()}, str(tmp_path / "certs")).items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    pull = ("images", "pull", "--hosts-dir", str(tmp_path / "certs"), f"{host}/hcp/pause:2")
    told = environment_of(NodeProxy("", proxy.url, ("10.0.0.0/8",)))
    with containerd(tmp_path / "node", {}, inside=proxy.inside, more_environment=told) as node:
        node.ctr(*pull)
        assert f"{host}/hcp/pause:2" in node.images()
    asked = proxy.asked_for(host)
    assert asked
    told = environment_of(NodeProxy("", proxy.url, (REGISTRY,)))
    with containerd(tmp_path / "other", {}, inside=proxy.inside, more_environment=told) as node:
        assert node.ctr(*pull, check=False).returncode != 0
    assert proxy.asked_for(host) == asked


def environment_of(proxy: NodeProxy) -> dict[str, str]:
    """What systemd reads on the node for containerd."""
    document = node_document(NodeInput("", "kubeconfig", "CA", ["172.31.0.0/16"], "pause", proxy=proxy))
    [text] = [
        read_data_url(f["contents"]["source"]).decode()
        for f in document["storage"]["files"]
        if f["path"] == "/etc/hcp/proxy.env"
    ]
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))
