"""An image is made from its description alone."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.oci.writer import ImageConfig, Layer, Layout, read_layout, write_image
from hcp.operator.capi import MANAGERS
from hcp.payload import BuildContext, Component, Engine, Progress
from hcp.payload.builders.capi import OFFICIAL, is_official
from hcp.payload.image import Image, Take, binaries, image_component, image_digest, reference
from hcp.payload.images.static import static_images
from hcp.payload.registry import Registry
from hcp.payload.store import Store
from hcp.payload.transfer import export, import_file
from hcp.payload.versions import component_table

IMAGE = Image(
    "tool",
    "1.2",
    (*binaries("upstream", "tool"), Take("upstream", "files/*.conf", "/etc/tool/", mode=0o644)),
    entrypoint=("tool",),
    texts={"/etc/hello": "hello\n"},
    scripts={"/usr/bin/start": "#!/bin/sh\n"},
    links={"/var/run": "../run"},
    folders={"/data": (0o750, 107)},
    hide=("/usr/share/doc",),
)


def _upstream(ctx: BuildContext) -> None:
    for path in ("bin/tool", "files/a.conf", "files/b.conf"):
        (ctx.out / path).parent.mkdir(exist_ok=True)
        (ctx.out / path).write_text(path)


def _engine(folder: Path, image: Image) -> Engine:
    registry = Registry([Component("upstream", "1", _upstream), image_component(image)])
    return Engine(registry, Store(folder / "cache"), Progress(io.StringIO(), live=False))


def _built(folder: Path, image: Image = IMAGE) -> Layout:
    return read_layout(_engine(folder, image).ensure([image.component])[image.component] / "image")


def _members(layout: Layout) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(layout.blob(layout.manifest["layers"][-1]["digest"])) as archive:
        return {member.name: member for member in archive}


def test_everything_described_is_inside(tmp_path: Path) -> None:
    members = _members(_built(tmp_path))
    assert members["usr/local/bin/tool"].mode == 0o755
    assert members["etc/tool/a.conf"].mode == 0o644
    assert members["usr/bin/start"].mode == 0o755
    assert members["var/run"].linkname == "../run"
    assert (members["data"].mode, members["data"].uid) == (0o750, 107)
    assert "usr/share/.wh.doc" in members
    assert members["tmp"].mode == 0o1777


@pytest.mark.parametrize("official", [False, True])
@pytest.mark.parametrize("name", ["cluster-api", "cluster-api-kubevirt"])
def test_a_manager_is_where_its_pod_starts_it_with_the_official_one_beside_it(
    tmp_path: Path, name: str, official: bool
) -> None:
    [command] = component_table(name)["commands"]
    programs = {command, command + OFFICIAL} if official else {command}

    def manager(ctx: BuildContext) -> None:
        (ctx.out / "bin").mkdir()
        for program in programs:
            (ctx.out / "bin" / program).write_text(program)

    [image] = [image for image in static_images() if image.name == name]
    registry = Registry([Component(name, "1", manager), image_component(image)])
    engine = Engine(registry, Store(tmp_path / "cache"), Progress(io.StringIO(), live=False))
    folder = engine.ensure([image.component])[image.component]
    assert is_official(folder) is official
    members = _members(read_layout(folder / "image"))
    assert {path for path, member in members.items() if path.startswith(command) and member.mode == 0o755} == programs
    assert MANAGERS[name][1] == f"/{command}", "as the operator starts it"


def test_pods_can_see_that_the_user_is_not_root(tmp_path: Path) -> None:
    assert _built(tmp_path).config["config"]["User"] == "65532"


def test_two_caches_give_one_digest(tmp_path: Path) -> None:
    assert _built(tmp_path / "one").digest == _built(tmp_path / "two").digest


def test_a_changed_description_is_another_artifact(tmp_path: Path) -> None:
    changed = replace(IMAGE, texts={"/etc/hello": "changed\n"})
    keys = {_engine(tmp_path, image).registry.key("image-tool") for image in (IMAGE, changed)}
    assert len(keys) == 2


def test_a_file_that_upstream_no_longer_has_is_an_error(tmp_path: Path) -> None:
    lacking = replace(IMAGE, take=(Take("upstream", "bin/gone", "/bin/gone"),))
    with pytest.raises(HcpError, match=r"needs bin/gone of the component upstream"):
        _built(tmp_path, lacking)


def test_two_minors_share_a_repository() -> None:
    image = replace(IMAGE, minor="1.36")
    assert (image.component, image.repository) == ("image-tool-1.36", "hcp/tool")


def test_reference_is_by_digest(tmp_path: Path) -> None:
    engine = _engine(tmp_path, IMAGE)
    artifact = engine.ensure(["image-tool"])["image-tool"]
    name = reference("hcp/tool", image_digest(artifact))
    assert name == f"registry.hcp.test:5000/hcp/tool@{read_layout(artifact / 'image').digest}"


def test_images_on_one_base_travel_with_it_once(tmp_path: Path) -> None:
    def base(ctx: BuildContext) -> None:
        layer = Layer()
        layer.file("big", b"\0\1\2" * 100_000)
        write_image(ctx.out / "image", "base", [layer], ImageConfig(), compress=False)

    images = [Image(name, "1", (), base="rootfs", texts={"/name": name}) for name in ("one", "two")]
    registry = Registry([Component("rootfs", "1", base), *map(image_component, images)])
    engine = Engine(registry, Store(tmp_path / "cache"), Progress(io.StringIO(), live=False))
    made = engine.ensure(["image-one", "image-two"])
    export(engine.store, registry, [], tmp_path / "file")
    assert (tmp_path / "file").stat().st_size < 500_000
    other = Store(tmp_path / "other")
    taken, left = import_file(other, registry, tmp_path / "file")
    assert (sorted(taken), left) == (["image-one", "image-two", "rootfs"], [])
    again = other.find("image-two", registry.key("image-two"))
    assert again is not None
    assert image_digest(again) == image_digest(made["image-two"])
