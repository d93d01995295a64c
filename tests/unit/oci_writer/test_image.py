"""A written layout is whole, valid and the same every time."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.oci.writer import ImageConfig, Layer, Layout, read_layout, write_image

CONFIG = ImageConfig(entrypoint=("/bin/app",), user="65532", environment={"A": "1"}, labels={"l": "v"})


def _image(target: Path, text: str = "x", base: Layout | None = None) -> Layout:
    layer = Layer("one file")
    layer.file("bin/app", text, mode=0o755)
    return write_image(target, "registry.hcp.test:5000/hcp/app:1", [layer], CONFIG, base=base)


def test_digest_is_stable_across_builds(tmp_path: Path) -> None:
    assert _image(tmp_path / "a").digest == _image(tmp_path / "b").digest


def test_every_descriptor_names_a_blob_with_that_digest(tmp_path: Path) -> None:
    layout = _image(tmp_path)
    for descriptor in layout.blobs:
        raw = layout.blob(descriptor["digest"]).read_bytes()
        assert len(raw) == descriptor["size"]
        assert f"sha256:{hashlib.sha256(raw).hexdigest()}" == descriptor["digest"]


def test_index_names_the_image(tmp_path: Path) -> None:
    layout = _image(tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    (descriptor,) = index["manifests"]
    assert descriptor["digest"] == layout.digest
    assert descriptor["annotations"]["io.containerd.image.name"] == "registry.hcp.test:5000/hcp/app:1"
    assert json.loads((tmp_path / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}


def test_config_says_what_runs(tmp_path: Path) -> None:
    config = _image(tmp_path).config
    assert config["config"]["Entrypoint"] == ["/bin/app"]
    assert config["config"]["User"] == "65532"
    assert config["config"]["Labels"] == {"l": "v"}
    assert "A=1" in config["config"]["Env"]
    assert len(config["rootfs"]["diff_ids"]) == 1


def test_a_base_gives_its_layers_first(tmp_path: Path) -> None:
    base = _image(tmp_path / "base", "base")
    child = _image(tmp_path / "child", "child", base)
    assert child.manifest["layers"][0] == base.manifest["layers"][0]
    assert child.config["rootfs"]["diff_ids"][0] == base.config["rootfs"]["diff_ids"][0]
    assert len(child.manifest["layers"]) == 2
    assert child.blob(base.manifest["layers"][0]["digest"]).exists()


def test_a_cut_blob_is_noticed(tmp_path: Path) -> None:
    layout = _image(tmp_path)
    layout.blob(layout.manifest["layers"][0]["digest"]).write_bytes(b"")
    with pytest.raises(HcpError, match="damaged"):
        read_layout(tmp_path)


def test_something_else_is_not_a_layout(tmp_path: Path) -> None:
    with pytest.raises(HcpError, match="not a whole OCI layout"):
        read_layout(tmp_path)
