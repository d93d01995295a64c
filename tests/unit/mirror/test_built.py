"""Releases that were built here: out of files of `payload export`, and into archives that `payload import` reads."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.published_images import artifacts
from tests.support.unit.workshop import Workshop

from hcp import payload
from hcp.errors import HcpError
from hcp.mirror.archive_reading import Archives, at, scan
from hcp.mirror.built import plan_built, plan_exported
from hcp.mirror.collect import StoreDestination, write_archives
from hcp.mirror.copy import Copier
from hcp.mirror.plan import Plan
from hcp.mirror.run import load
from hcp.mirror.sources import Sources
from hcp.mirror.store import BlobStore
from hcp.mirror.workspace import Workspace
from hcp.payload.transfer import export, import_file

TAGS = {
    "openshift/release-images:1.36.3-x86_64",
    "openshift/release:1.36.3-x86_64-etcd",
    "openshift/release:1.36.3-x86_64-kube-apiserver",
    "openshift/release:1.36.3-x86_64-kube-virt-container",
}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return artifacts(tmp_path_factory.mktemp("images"), big=10_000)


def _with_images(shop: Workshop, images: dict[str, Path]) -> Workshop:
    parts = tuple(name for name in images if name.startswith(("image-", "node-disk-")) and name != "image-hcp")
    for name in (*parts, "release-1.36", "image-hcp"):
        source = images[name] / "image"
        shop.add(
            name,
            deps=parts if name == "release-1.36" else (),
            during=lambda ctx, source=source: shutil.copytree(source, ctx.out / "image"),  # type: ignore[misc]
        )
    return shop


@pytest.fixture
def shop(tmp_path: Path, images: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Workshop:
    made = _with_images(Workshop(tmp_path / "shop"), images)
    monkeypatch.setattr("hcp.payload.registry.default_registry", lambda: made.registry)
    monkeypatch.setattr("hcp.payload.published.default_registry", lambda: made.registry)
    monkeypatch.setattr(payload, "find", made.engine().find)
    return made


def tags(plan: Plan) -> set[str]:
    return {f"{item.repository}:{item.tag}" for item in plan.items}


async def whole(found: Archives, plan: Plan) -> None:
    """Every byte of every image is there; reading checks digests."""
    for item in plan.items:
        for blob in found.image(item.digest).all_blobs:
            size = sum([len(data) async for data in blob.read(0, lambda _: None)])
            assert size == blob.size


async def test_an_exported_file_is_mirrored_as_releases_and_images(shop: Workshop, tmp_path: Path) -> None:
    shop.engine().ensure(shop.registry.names())
    export(shop.store, shop.registry, [], tmp_path / "parts.tar")
    found = scan(at(tmp_path / "parts.tar"))
    plan = plan_exported(found)
    assert plan.problems == []
    assert tags(plan) == TAGS | {"hcp/haproxy:debian", "hcp/hcp:0.1.0"}
    await whole(found, plan)
    (release,) = [item for item in plan.items if item.last]
    assert release.source.startswith("registry.hcp.test:5000/hcp/release@sha256:")


def test_a_part_that_was_not_exported_is_said(shop: Workshop, tmp_path: Path) -> None:
    shop.engine().ensure(shop.registry.names())
    export(shop.store, shop.registry, ["release-1.36", "image-etcd"], tmp_path / "parts.tar")
    plan = plan_exported(scan(at(tmp_path / "parts.tar")))
    assert sorted(problem.what for problem in plan.problems) == [
        "kube-apiserver of release 1.36.3",
        "kube-virt-container of release 1.36.3",
    ]


async def test_an_archive_of_a_built_release_can_be_imported(
    shop: Workshop, images: dict[str, Path], tmp_path: Path
) -> None:
    shop.engine().ensure(shop.registry.names())
    plan = Plan()
    plan_built(plan, "1.36", boot_disk=True)
    assert tags(plan) == TAGS
    workspace = Workspace(tmp_path / "disk")
    workspace.made.mkdir(parents=True)

    def nobody(_: object) -> None:
        raise AssertionError("no registry is needed")

    sources = Sources(nobody)  # type: ignore[arg-type]
    to = StoreDestination(BlobStore(tmp_path / "cache"), lambda item: load(item, sources, workspace.made))
    copied = await Copier(to, lambda *_: None).run(plan)
    write = {"most": 0, "strict": False, "since": ""}
    written = write_archives(workspace, to, plan, copied, {}, **write)  # type: ignore[arg-type]
    assert [path.name for path in written.archives] == ["mirror_000001.tar"]
    found = scan(written.archives)
    assert found.plan.items == plan.items
    await whole(found, found.plan)
    # The other machine takes them into its cache, and builds nothing.
    other = _with_images(Workshop(tmp_path / "other"), images)
    taken, left = import_file(other.store, other.registry, written.archives[0])
    assert (sorted(taken), left) == (["image-etcd", "image-kube-apiserver", "node-disk-1.36", "release-1.36"], [])
    other.engine().ensure(taken)
    assert other.built == []
    assert write_archives(workspace, to, plan, copied, {}, **write).archives == []  # type: ignore[arg-type]


def test_a_release_that_is_not_built_is_said(shop: Workshop) -> None:
    with pytest.raises(HcpError, match="is not built yet") as caught:
        plan_built(Plan(), "1.36", boot_disk=True)
    assert caught.value.hint == "run: hcp payload build release-1.36"
    with pytest.raises(HcpError, match=r"there is no release payload:1\.2") as caught:
        plan_built(Plan(), "1.2", boot_disk=True)
    assert caught.value.hint == "it is one of 1.36"
