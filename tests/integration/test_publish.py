"""Publishing the operator and releases in a real registry: whole, once, with no trace of where they were built."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli_runner import Runner
from tests.support.image_sets import Site
from tests.support.published_images import BIG, VERSION, artifacts
from tests.support.registry import Registry, start
from tests.support.registry_front import front

from hcp import release
from hcp.errors import HcpError
from hcp.oci import Auths, Reference, RegistryClient, signature
from hcp.oci.mirrors import from_objects
from hcp.oci.push import Pusher
from hcp.oci.push_errors import PushError
from hcp.publish.run import Published, publish
from hcp.publish.signing import sign, verify
from hcp.publish.target import Target


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """With TLS and a password."""
    made, process = start(tmp_path_factory.mktemp("closed"), passwords=True)
    yield made
    process.kill()
    process.wait()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Registry]:
    """Without either, and empty."""
    (tmp_path / "plain").mkdir()
    made, process = start(tmp_path / "plain", passwords=False, tls=False)
    yield made
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return artifacts(tmp_path_factory.mktemp("images"))


def _quiet(done: int, total: int, name: str) -> None:
    assert 0 < done <= total, name


async def _publish(pusher: Pusher, images: dict[str, Path], folder: Path, path: str = "team/hcp") -> Published:
    folder.mkdir(exist_ok=True)
    return await publish(Target(pusher.registry, path), images, pusher, folder, _quiet)


def _pusher(registry: Registry) -> Pusher:
    return Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem, auths=Auths(registry.auths))


async def test_everything_a_published_release_names_is_in_that_registry(
    closed: Registry, images: dict[str, Path], tmp_path: Path
) -> None:
    async with _pusher(closed) as pusher:
        published = await _publish(pusher, images, tmp_path / "work")
    assert list(published.releases) == [VERSION]
    here = f"{closed.host}/team/hcp/"
    async with RegistryClient(closed.auths, closed.ca_pem) as client:
        found = await release.read(client, published.releases[VERSION])
        assert found.version == VERSION
        assert found.component_versions == {"etcd": "3.6.5", "kubernetes": VERSION}
        listed = await client.read_files(published.operator, ["opt/hcp/images.json"])
        named = [*found.components.values(), str(found.boot_disk), *json.loads(listed["opt/hcp/images.json"]).values()]
        assert len(named) == 4
        for image in named:
            assert image.startswith(here)
            await client.manifest(image)
        files = await client.read_files(published.releases[VERSION], [release.IMAGE_REFERENCES, release.BOOT_IMAGES])
        assert b"hcp.test" not in b"".join(files.values())
        config = (await client.config(published.operator))["config"]
        assert (config["Entrypoint"], config["User"]) == (["hcp"], "1001")
        # By tag too, and by a tag that keeps an image that the moving one leaves.
        assert await client.digest(f"{here}release:{VERSION}") == found.digest
        assert sorted(await client.tags(f"{here}release")) == [VERSION, f"{VERSION}-{found.digest[7:19]}"]


async def test_a_second_run_changes_nothing_and_asks_little(
    plain: Registry, images: dict[str, Path], tmp_path: Path
) -> None:
    async with Pusher(f"http://{plain.host}") as first:
        published = await _publish(first, images, tmp_path / "one")
        assert first.sent_bytes > BIG
    async with Pusher(f"http://{plain.host}") as second:
        assert await _publish(second, images, tmp_path / "two") == published
        assert second.sent_bytes == 0
        # Six images, each asked for by digest and by its tags; two have a tag that moves besides.
        assert second.requests == {"HEAD": 6 * 2 + 2}


async def test_only_what_is_new_is_sent_for_the_next_version(
    plain: Registry, images: dict[str, Path], tmp_path: Path
) -> None:
    async with Pusher(f"http://{plain.host}") as first:
        await _publish(first, images, tmp_path / "one")
    newer = artifacts(tmp_path / "newer", "1.36.4")
    async with Pusher(f"http://{plain.host}") as second:
        published = await _publish(second, newer, tmp_path / "two")
        assert list(published.releases) == ["1.36.4"]
        assert 0 < second.sent_bytes < 100_000
        assert published.minors == ["1.36"]


async def test_a_layer_of_several_images_is_sent_once_and_mounted(
    plain: Registry, images: dict[str, Path], tmp_path: Path
) -> None:
    async with front(f"http://{plain.host}") as middle, Pusher(f"http://{middle.host}") as pusher:
        await _publish(pusher, images, tmp_path / "work")
        # Random bytes do not shrink: the base of three images is 2 MiB, the largest of them all BIG.
        assert BIG + (2 << 20) < middle.received < BIG + (3 << 20)


async def test_a_broken_upload_goes_on_where_it_broke(plain: Registry, images: dict[str, Path], tmp_path: Path) -> None:
    cuts = [2 << 20, 1 << 20]
    async with front(f"http://{plain.host}", cuts=cuts) as middle, Pusher(f"http://{middle.host}") as pusher:
        digest = await pusher.push(images["image-etcd"] / "image", "team/etcd")
        assert not middle.cuts
        assert middle.seen["PATCH"] == 3
        # What had arrived was not sent again, but for what was on its way.
        assert middle.received < BIG + (2 << 20)
    async with RegistryClient(plain_http=[plain.host]) as client:
        ref = Reference.parse(f"{plain.host}/team/etcd@{digest}")
        manifest = await client.manifest(ref)
        with await client.open_blob(ref, manifest.layers[0]["digest"]) as file:
            assert len(file.read()) == manifest.layers[0]["size"]


async def test_a_blob_whose_last_answer_was_lost_is_not_sent_again(plain: Registry, images: dict[str, Path]) -> None:
    async with front(f"http://{plain.host}", lost=2) as middle, Pusher(f"http://{middle.host}") as pusher:
        await pusher.push(images["image-etcd"] / "image", "team/etcd")
        assert not middle.lost  # the ends of both blobs
        assert middle.received < BIG + (1 << 20)


async def test_a_busy_registry_is_asked_again(plain: Registry, images: dict[str, Path], tmp_path: Path) -> None:
    async with front(f"http://{plain.host}", busy=3) as middle, Pusher(f"http://{middle.host}") as pusher:
        await _publish(pusher, images, tmp_path / "work")
        assert middle.busy == 0


async def test_a_killed_run_is_finished_by_the_next(plain: Registry, images: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="killed"):
        async with Pusher(f"http://{plain.host}") as first:

            def die(done: int, total: int, name: str) -> None:
                raise RuntimeError(f"killed after {name}")

            (tmp_path / "one").mkdir()
            await publish(Target(plain.host, "team/hcp"), images, first, tmp_path / "one", die)
    async with Pusher(f"http://{plain.host}") as second:
        published = await _publish(second, images, tmp_path / "two")
    async with RegistryClient(plain_http=[plain.host]) as client:
        found = await release.read(client, published.releases[VERSION])
        for image in found.components.values():
            await client.manifest(image)


async def test_tokens_are_bought_for_pushing_and_for_mounting(
    plain: Registry, images: dict[str, Path], tmp_path: Path
) -> None:
    async with front(f"http://{plain.host}", tokens=True) as middle:
        login = Auths({"auths": {middle.host: {"username": "push", "password": "secret"}}})
        async with Pusher(f"http://{middle.host}", auths=login) as pusher:
            await _publish(pusher, images, tmp_path / "work")
        assert any("push" in scope for scopes in middle.scopes for scope in scopes)
        assert any(len(scopes) == 2 for scopes in middle.scopes)
        wrong = Auths({"auths": {middle.host: {"username": "push", "password": "wrong"}}})
        async with Pusher(f"http://{middle.host}", auths=wrong) as pusher:
            with pytest.raises(PushError, match="does not accept the login"):
                await pusher.push(images["image-etcd"] / "image", "other/etcd")


async def test_each_refusal_has_its_own_sentence(closed: Registry, images: dict[str, Path], tmp_path: Path) -> None:
    layout = images["image-etcd"] / "image"
    async with Pusher(f"https://{closed.host}", ca_pem=closed.ca_pem) as pusher:
        with pytest.raises(PushError, match="wants a login to push a/b") as caught:
            await pusher.push(layout, "a/b")
        assert "--authfile" in str(caught.value.hint)
    wrong = Auths({"auths": {closed.host: {"username": "pull", "password": "wrong"}}})
    async with Pusher(f"https://{closed.host}", ca_pem=closed.ca_pem, auths=wrong) as pusher:
        with pytest.raises(PushError, match="does not accept the login"):
            await pusher.push(layout, "a/b")
    async with Pusher(f"https://{closed.host}", auths=Auths(closed.auths)) as pusher:
        with pytest.raises(PushError, match="certificate is not trusted") as caught:
            await pusher.push(layout, "a/b")
        assert "--ca" in str(caught.value.hint)
    async with Pusher(f"http://{closed.host}", auths=Auths(closed.auths)) as pusher:
        with pytest.raises(PushError, match="it speaks TLS"):
            await pusher.push(layout, "a/b")


async def test_a_registry_without_tls_has_to_be_declared(plain: Registry, images: dict[str, Path]) -> None:
    async with Pusher(f"https://{plain.host}") as pusher:
        with pytest.raises(PushError, match="it does not speak TLS") as caught:
            await pusher.push(images["image-etcd"] / "image", "a/b")
    assert "--insecure" in str(caught.value.hint)


async def test_a_read_only_registry_is_named(images: dict[str, Path], tmp_path: Path) -> None:
    made, process = start(tmp_path, passwords=False, tls=False, read_only=True)
    try:
        async with Pusher(f"http://{made.host}") as pusher:
            with pytest.raises(PushError, match="takes no uploads"):
                await pusher.push(images["image-etcd"] / "image", "a/b")
    finally:
        process.kill()
        process.wait()


async def test_a_signature_is_made_once_and_openssl_agrees(
    plain: Registry, images: dict[str, Path], tmp_path: Path
) -> None:
    key, public = _keys(tmp_path)
    other, _ = _keys(tmp_path / "other")
    http = [plain.host]
    async with Pusher(f"http://{plain.host}") as pusher:
        image = (await _publish(pusher, images, tmp_path / "work")).releases[VERSION]
        signer = signature.private_key(key.read_bytes())
        async with RegistryClient(plain_http=http) as client:
            with pytest.raises(HcpError, match="is not signed"):
                await verify(client, image, signer.public_key())
        async with RegistryClient(plain_http=http) as client:
            assert await sign(pusher, client, image, signer)
        async with RegistryClient(plain_http=http) as client:
            assert not await sign(pusher, client, image, signer)
        stranger = signature.private_key(other.read_bytes())
        async with RegistryClient(plain_http=http) as client:
            with pytest.raises(HcpError, match=r"no signature .* was made with this key"):
                await verify(client, image, stranger.public_key())
            assert await sign(pusher, client, image, stranger)
    ref = Reference.parse(image)
    async with RegistryClient(plain_http=http) as client:
        assert await verify(client, image, signature.public_key(public.read_bytes())) == ref.digest
        beside = signature.place(ref, str(ref.digest))
        assert beside.tag == f"sha256-{str(ref.digest)[7:]}.sig"
        layers = (await client.manifest(beside)).layers
        assert len(layers) == 2
        assert layers[0]["mediaType"] == "application/vnd.dev.cosign.simplesigning.v1+json"
        document = await client.blob(beside, layers[0]["digest"])
    assert json.loads(document)["critical"]["image"]["docker-manifest-digest"] == ref.digest
    (tmp_path / "document").write_bytes(document)
    said = layers[0]["annotations"]["dev.cosignproject.cosign/signature"]
    (tmp_path / "signature").write_bytes(base64.b64decode(said))
    words = ["openssl", "dgst", "-sha256", "-verify", str(public), "-signature", str(tmp_path / "signature")]
    subprocess.run([*words, str(tmp_path / "document")], check=True, capture_output=True)
    cli = Runner(tmp_path / "none", tmp_path)
    assert str(ref.digest) in cli.ok("release", "verify", image, "--key", str(public), "--insecure").out
    _, third = _keys(tmp_path / "third")
    assert "was made with this key" in cli.fails("release", "verify", image, "--key", str(third), "--insecure")


def _keys(folder: Path) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    key, public = folder / "key.pem", folder / "key.pub"
    make = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)]
    subprocess.run(make, check=True, capture_output=True)
    subprocess.run(["openssl", "ec", "-in", str(key), "-pubout", "-out", str(public)], check=True, capture_output=True)
    return key, public


async def test_the_commands_read_what_was_published(closed: Registry, images: dict[str, Path], tmp_path: Path) -> None:
    async with _pusher(closed) as pusher:
        first = await _publish(pusher, images, tmp_path / "one", "read")
        await _publish(pusher, artifacts(tmp_path / "newer", "1.36.4"), tmp_path / "two", "read")
    (tmp_path / "ca.pem").write_bytes(closed.ca_pem)
    (tmp_path / "auth.json").write_text(json.dumps(closed.auths))
    cli = Runner(tmp_path / "none", tmp_path)
    access = ("--ca", "ca.pem", "--authfile", "auth.json")
    place = f"{closed.host}/read"
    listed = json.loads(cli.ok("release", "list", f"docker://{place}", *access, "-o", "json").out)
    assert [one["version"] for one in listed] == [VERSION, "1.36.4"]
    assert listed[0]["image"] == first.releases[VERSION]
    told = cli.ok("release", "info", f"{place}/release:{VERSION}", *access).out
    assert f"Version:       {VERSION}" in told
    assert f"{place}/etcd@sha256:" in told
    changed = json.loads(
        cli.ok("release", "diff", f"oci:{images['release-1.36'] / 'image'}", f"{place}/release:1.36.4", *access,
               "-o", "json").out
    )  # fmt: skip
    assert changed["versions"] == {"kubernetes": [VERSION, "1.36.4"], "release": [VERSION, "1.36.4"]}
    assert changed["images"] == {}
    same = cli.ok("release", "diff", str(images["release-1.36"] / "image"), f"{place}/release:{VERSION}", *access)
    assert "No differences" in same.out
    assert "does not exist" in cli.fails("release", "info", f"{place}/release:9", *access)
    assert "--authfile" in cli.fails("release", "info", f"{place}/release:{VERSION}", "--ca", "ca.pem")
    assert "--ca" in cli.fails("release", "list", place, "--authfile", "auth.json")


async def test_mirroring_the_operator_brings_what_it_names(
    closed: Registry, images: dict[str, Path], tmp_path: Path
) -> None:
    async with _pusher(closed) as pusher:
        published = await _publish(pusher, images, tmp_path / "work", "onward")
    (tmp_path / "target").mkdir()
    target, process = start(tmp_path / "target", passwords=True)
    try:
        site = Site(tmp_path / "site", closed, target)
        site.configure({"additionalImages": [{"name": published.operator}]})
        words = ("-c", "isc.yaml", "--workspace", "file://w", f"docker://{target.host}")
        await asyncio.to_thread(site.ok, *words)
        mirrors = from_objects(site.documents("w/working-dir/cluster-resources/idms-oc-mirror.yaml"))
        async with RegistryClient(target.auths, target.ca_pem, mirrors) as client:
            listed = await client.read_files(published.operator, ["opt/hcp/images.json"])
            named = json.loads(listed["opt/hcp/images.json"]).values()
            assert named
            for image in named:
                assert (await client.manifest(image)).found_at.registry == target.host
    finally:
        process.kill()
        process.wait()


def test_bad_input_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    cli = Runner(tmp_path / "none", tmp_path)
    push = ("release", "push")
    assert " 1.36, 1.36-" in cli.fails(*push, "docker://r.example.com/x", "--release", "1.20")
    assert '"team" names no registry' in cli.fails(*push, "docker://team/hcp")
    assert "has a tag" in cli.fails(*push, "docker://r.example.com/hcp:1")
    assert "only docker://" in cli.fails(*push, "https://r.example.com/hcp")
    assert "cannot be read" in cli.fails(*push, "docker://r.example.com/x", "--authfile", "nothing.json")
    (tmp_path / "rsa.pem").write_text("no key")
    assert "cannot be used" in cli.fails(*push, "docker://r.example.com/x", "--sign-key", "rsa.pem")
    docker = tmp_path / ".docker"
    docker.mkdir()
    (docker / "config.json").write_text('{"credHelpers": {"r.example.com": "pass"}}')
    assert "credential helper pass" in cli.fails(*push, "docker://r.example.com/x")
