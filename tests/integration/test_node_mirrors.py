"""A real containerd that pulls through mirrors by a node's document: other names, other logins than at the source."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.support.api_server import free_port
from tests.support.containerd import Containerd, containerd
from tests.support.eventually import eventually
from tests.support.registry import Registry, start
from tests.support.registry_front import front

from hcp import payload, pki
from hcp.ignition.containerd import containerd_config
from hcp.ignition.document import read_data_url
from hcp.ignition.mirror_proxy import CONFIG, mirror_proxy_document
from hcp.ignition.mirrors import CERTS_DIR, MIRROR_PROXY, MirrorRule, registry_files
from hcp.oci import Auths
from hcp.oci.push import Pusher

SOURCE = "registry.source.invalid"


@dataclass
class Node:
    """containerd and the server beside it, which read what a document of a node would have brought."""

    folder: Path
    daemon: Containerd

    def pull(self, image: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        words = ("images", "pull", "--hosts-dir", str(self.folder / "certs.d"), image)
        return self.daemon.ctr(*words, check=check)


@contextmanager
def node(
    folder: Path, rules: list[MirrorRule], authorities: dict[str, str], pull_secret: dict[str, object] | None
) -> Iterator[Node]:
    """Everything as the document has it, but for the folders and the port."""
    folder.mkdir()
    address = f"127.0.0.1:{free_port()}"
    document = mirror_proxy_document(rules, authorities, login=pull_secret is not None)
    for entry in [*registry_files(rules, authorities), *document["storage"]["files"]]:
        place = Path(
            entry["path"].replace(CERTS_DIR, str(folder / "certs.d")).replace(CONFIG, f"{folder}/mirrors.json")
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        text = read_data_url(entry["contents"]["source"]).decode()
        place.write_text(text.replace(CERTS_DIR, str(folder / "certs.d")).replace(MIRROR_PROXY, address))
    if pull_secret is not None:
        (folder / "pull-secret").write_text(json.dumps(pull_secret))
    program = payload.ensure(["mirror-proxy"])["mirror-proxy"] / "bin" / "mirror-proxy"
    environment = {**os.environ, "CREDENTIALS_DIRECTORY": str(folder)}
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen([program, folder / "mirrors.json"], stdout=log, stderr=log, env=environment)
    try:
        while "rules for mirrors" not in (folder / "proxy.log").read_text():
            assert process.poll() is None, (folder / "proxy.log").read_text()
            time.sleep(0.02)
        with containerd(folder / "containerd", {"conf-release.toml": containerd_config("pause.invalid/p:1")}) as daemon:
            yield Node(folder, daemon)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A mirror with TLS by a CA of its own and a password."""
    made, process = start(tmp_path_factory.mktemp("mirror"), passwords=True)
    yield made
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def image() -> Path:
    return payload.ensure(["image-pause"])["image-pause"] / "image"


async def _push(registry: Registry, image: Path, repository: str) -> str:
    auths = Auths(registry.auths)
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem, auths=auths) as pusher:
        return await pusher.push(image, repository, tag="v1")


async def test_an_image_is_found_under_its_other_name_with_the_login_of_the_mirror(
    closed: Registry, image: Path, tmp_path: Path
) -> None:
    digest = await _push(closed, image, "site/renamed-release")
    rules = [
        MirrorRule(f"{SOURCE}/team", (f"{closed.host}/site/wrong",)),
        MirrorRule(f"{SOURCE}/team/release", (f"{closed.host}/site/empty", f"{closed.host}/site/renamed-release")),
    ]
    both = {closed.host: closed.login, SOURCE: {"username": "other", "password": "else"}}
    logins: dict[str, object] = {"auths": both}
    with node(tmp_path / "node", rules, {closed.host: closed.ca_pem.decode()}, logins) as one:
        one.pull(f"{SOURCE}/team/release:v1")
        one.pull(f"{SOURCE}/team/release@{digest}")
        assert {f"{SOURCE}/team/release:v1", f"{SOURCE}/team/release@{digest}"} <= set(one.daemon.images())
        refused = one.pull(f"{SOURCE}/team/releases:v1", check=False)
        assert refused.returncode, "a source is a whole part of a name"


async def test_every_registry_of_a_domain_has_the_mirror(closed: Registry, image: Path, tmp_path: Path) -> None:
    await _push(closed, image, "all/deep/tool")
    rules = [MirrorRule("*.source.invalid", (f"{closed.host}/all",))]
    with node(tmp_path / "node", rules, {closed.host: closed.ca_pem.decode()}, closed.auths) as one:
        one.pull("any.source.invalid/deep/tool:v1")


async def test_a_mirror_that_sells_tokens_gets_the_login_of_the_mirror(
    closed: Registry, image: Path, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    plain, process = start(tmp_path / "plain", passwords=False, tls=False)
    ca = pki.new_ca("front")
    leaf = pki.issue(ca, "localhost", dns=("localhost",), usage="server")
    (tmp_path / "both.pem").write_bytes(leaf.cert_pem + leaf.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    try:
        async with Pusher(f"http://{plain.host}") as pusher:
            await pusher.push(image, "other/name", tag="v1")
        async with front(f"http://{plain.host}", tokens=True, tls=context) as mirror:
            rules = [MirrorRule(f"{SOURCE}/team", (f"{mirror.host}/other",))]
            logins: dict[str, object] = {"auths": {mirror.host: {"username": "push", "password": "secret"}}}
            with node(tmp_path / "node", rules, {mirror.host: ca.cert_pem.decode()}, logins) as one:
                await asyncio.to_thread(one.pull, f"{SOURCE}/team/name:v1")
            assert mirror.scopes == [["repository:other/name:pull"]]
    finally:
        process.kill()
        process.wait()


async def test_a_missing_login_is_said_where_the_puller_reads_it(closed: Registry, image: Path, tmp_path: Path) -> None:
    digest = await _push(closed, image, "site/secret")
    rules = [MirrorRule(f"{SOURCE}/team", (f"{closed.host}/site",))]
    with node(tmp_path / "node", rules, {closed.host: closed.ca_pem.decode()}, None) as one:
        assert one.pull(f"{SOURCE}/team/secret@{digest}", check=False).returncode
        words = f"the pull secret has none for {closed.host}"
        await eventually(partial(asyncio.to_thread, _says, one.folder / "proxy.log", words), "it is said")


def _says(log: Path, words: str) -> bool:
    return words in log.read_text()
