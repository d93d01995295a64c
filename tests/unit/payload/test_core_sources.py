"""Where a component comes from: --from, --download, and the order between them."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.support.unit.workshop import Workshop

from hcp.payload import Download


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A test's server has nothing to say."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server, and the folder it serves."""
    folder = tmp_path / "site"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", folder
    server.shutdown()
    thread.join()
    server.server_close()


def _archive(path: Path, member: str, content: bytes) -> str:
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_binaries_are_taken_from_a_folder(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("tool")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/tool").write_text("my own build")
    path = workshop.engine(from_dir=tmp_path / "mine").ensure(["tool"])["tool"]
    assert (path / "bin/tool").read_text() == "my own build"
    assert (path / "bin/tool").stat().st_mode & 0o111
    assert workshop.built == []
    assert any(f"taken from {tmp_path / 'mine'}" in line for line in workshop.lines())


def test_a_whole_component_is_taken_from_a_folder(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("tool")
    workshop.change("tool", outputs=("bin/tool", "manifests/op.yaml"))
    for name in ("bin/tool", "manifests/op.yaml", "manifests/more.yaml"):
        (tmp_path / "mine/tool" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine/tool" / name).write_text(name)
    path = workshop.engine(from_dir=tmp_path / "mine").ensure(["tool"])["tool"]
    assert (path / "manifests/more.yaml").read_text() == "manifests/more.yaml"


def test_a_folder_without_the_component_is_said_and_it_is_built(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("tool")
    workshop.engine(from_dir=tmp_path).ensure(["tool"])
    assert workshop.built == ["tool"]
    assert any("does not hold all of it" in line for line in workshop.lines())


def test_the_cache_comes_before_the_folder(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("tool")
    workshop.engine().ensure(["tool"])
    (tmp_path / "tool").write_text("my own build")
    path = workshop.engine(from_dir=tmp_path).ensure(["tool"])["tool"]
    assert (path / "bin/tool").read_text() == "binary of tool\n"


def test_an_official_build_with_a_pinned_checksum(workshop: Workshop, site: tuple[str, Path]) -> None:
    url, folder = site
    digest = _archive(folder / "tool.tgz", "tool-1.0/tool", b"official")
    workshop.add("tool")
    item = Download(f"{url}/tool.tgz", {"tool-1.0/tool": "bin/tool"}, sha256=digest)
    workshop.change("tool", downloads=(item,))
    path = workshop.engine(use_downloads=True).ensure(["tool"])["tool"]
    assert (path / "bin/tool").read_bytes() == b"official"
    assert workshop.built == []
    assert any("official build downloaded" in line for line in workshop.lines())


@pytest.mark.parametrize(
    "sums", ["{digest}\n", "{digest}  tool\n", "{other}  tool.asc\n{digest} *tool\n", "{digest}  ./tool\n"]
)
def test_a_checksum_from_the_publishers_sums_file(workshop: Workshop, site: tuple[str, Path], sums: str) -> None:
    url, folder = site
    (folder / "tool").write_bytes(b"official")
    digest = hashlib.sha256(b"official").hexdigest()
    (folder / "sums").write_text(sums.format(digest=digest, other="0" * 64))
    workshop.add("tool")
    item = Download(f"{url}/tool", {".": "bin/tool"}, sums_url=f"{url}/sums")
    workshop.change("tool", downloads=(item,))
    path = workshop.engine(use_downloads=True).ensure(["tool"])["tool"]
    assert (path / "bin/tool").read_bytes() == b"official"


@pytest.mark.parametrize("trouble", ["wrong sum", "no sum", "not there", "no member", "no archive"])
def test_a_download_that_is_not_right_is_never_used(workshop: Workshop, site: tuple[str, Path], trouble: str) -> None:
    url, folder = site
    digest: str | None = _archive(folder / "tool.tgz", "other" if trouble == "no member" else "tool", b"official")
    name = "missing.tgz" if trouble == "not there" else "tool.tgz"
    if trouble == "no archive":
        (folder / "tool.tgz").write_bytes(b"<html>please log in</html>")
        digest = hashlib.sha256(b"<html>please log in</html>").hexdigest()
    digest = {"wrong sum": "0" * 64, "no sum": None}.get(trouble, digest)
    workshop.add("tool")
    workshop.change("tool", downloads=(Download(f"{url}/{name}", {"tool": "bin/tool"}, sha256=digest),))
    path = workshop.engine(use_downloads=True).ensure(["tool"])["tool"]
    assert (path / "bin/tool").read_text() == "binary of tool\n"
    assert any("not downloaded" in line and "building it instead" in line for line in workshop.lines())


def test_nothing_is_downloaded_unless_asked_for(workshop: Workshop) -> None:
    workshop.add("tool")
    workshop.change("tool", downloads=(Download("http://127.0.0.1:1/tool", {".": "bin/tool"}, sha256="0" * 64),))
    workshop.engine().ensure(["tool"])
    assert not any("download" in line for line in workshop.lines())
