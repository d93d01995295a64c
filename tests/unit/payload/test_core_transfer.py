"""Carrying artifacts to another machine, and listing."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from tests.support.unit.workshop import Workshop

from hcp.errors import HcpError
from hcp.payload.cleaning import human_size
from hcp.payload.go_cache import drop_compiled
from hcp.payload.listing import rows, table
from hcp.payload.transfer import export, import_file


@pytest.fixture
def other(tmp_path: Path) -> Workshop:
    """A second machine."""
    return Workshop(tmp_path / "other")


def test_an_imported_artifact_is_not_built_again(workshop: Workshop, other: Workshop, tmp_path: Path) -> None:
    for shop in (workshop, other):
        shop.add("tool", during=lambda ctx: (ctx.out / "link").symlink_to("bin/tool"))
        shop.add("unbuilt")
    workshop.engine().ensure(["tool"])
    file = tmp_path / "payload.tar"
    assert export(workshop.store, workshop.registry, [], file) == ["tool"]
    assert import_file(other.store, other.registry, file) == (["tool"], [])
    path = other.engine().ensure(["tool"])["tool"]
    assert (path / "link").read_text() == "binary of tool\n"
    assert other.built == []


def test_artifacts_of_another_version_are_left_out(workshop: Workshop, other: Workshop, tmp_path: Path) -> None:
    workshop.add("tool")
    other.add("tool", inputs="newer recipe")
    workshop.engine().ensure(["tool"])
    export(workshop.store, workshop.registry, ["tool"], tmp_path / "f")
    assert import_file(other.store, other.registry, tmp_path / "f") == ([], ["tool"])
    assert other.engine().find("tool") is None


def test_a_damaged_file_is_refused(workshop: Workshop, other: Workshop, tmp_path: Path) -> None:
    workshop.add("tool")
    other.add("tool")
    workshop.engine().ensure(["tool"])
    file = tmp_path / "f"
    export(workshop.store, workshop.registry, ["tool"], file)
    file.write_bytes(file.read_bytes().replace(b"binary of tool", b"binary of fool"))
    with pytest.raises(HcpError, match="damaged"):
        import_file(other.store, other.registry, file)
    assert other.engine().find("tool") is None


def test_a_file_that_points_outside_is_refused(other: Workshop, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "f", "w") as archive:
        archive.addfile(tarfile.TarInfo("../../etc/passwd"), io.BytesIO())
    with pytest.raises(HcpError, match="no exported file has"):
        import_file(other.store, other.registry, tmp_path / "f")


@pytest.mark.parametrize("filters", [True, False], ids=["new Python", "Python before 3.11.4"])
def test_a_link_does_not_lead_outside(
    other: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filters: bool
) -> None:
    if not filters:
        monkeypatch.delattr(tarfile, "tar_filter", raising=False)
    link = tarfile.TarInfo("tool")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    with tarfile.open(tmp_path / "f", "w") as archive:
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("tool/escaped"), io.BytesIO())
    with pytest.raises(HcpError):
        import_file(other.store, other.registry, tmp_path / "f")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("content", [None, b"text", b""])
def test_something_else_is_not_imported(other: Workshop, tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "f").write_bytes(content)
    with pytest.raises(HcpError):
        import_file(other.store, other.registry, tmp_path / "f")


def test_exporting_what_is_not_built_is_an_error(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("tool")
    with pytest.raises(HcpError, match="tool is not built yet"):
        export(workshop.store, workshop.registry, ["tool"], tmp_path / "f")
    with pytest.raises(HcpError, match="nothing to export"):
        export(workshop.store, workshop.registry, [], tmp_path / "f")
    assert not list(tmp_path.glob("*f*"))


def test_compiled_packages_go_when_they_are_large_and_nobody_compiles(workshop: Workshop) -> None:
    compiled = workshop.store.root / "go" / "build"
    compiled.mkdir(parents=True)
    (compiled / "package").write_bytes(b"x" * 100)
    assert not drop_compiled(workshop.store, above=100)
    with workshop.store.lock("go-compiling", shared=True):
        assert not drop_compiled(workshop.store, above=99)
    assert drop_compiled(workshop.store, above=99)
    assert not compiled.exists()


def test_the_list_says_what_is_there(workshop: Workshop) -> None:
    workshop.add("tool")
    workshop.add("unbuilt")
    workshop.add("broken")
    workshop.engine().ensure(["tool", "broken"])
    (workshop.store.artifact("broken", workshop.registry.key("broken")) / "bin/broken").unlink()
    found = rows(workshop.registry, workshop.store)
    assert [row.state for row in found] == ["present", "missing", "damaged: bin/broken is missing"]
    assert table(found).splitlines()[-1].startswith("1 of 3 present")


def test_sizes_for_people() -> None:
    assert [human_size(n) for n in (5, 1536, 3 << 20, 7 << 30)] == ["5 B", "1.5 KiB", "3.0 MiB", "7.0 GiB"]
