"""The code of the protocols: made from what is pinned, refused when it is something else, made once."""

from __future__ import annotations

import io
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from hcp.csi.wire import generate
from hcp.csi.wire.generate import HERE, Protocol
from hcp.errors import HcpError
from hcp.payload.versions import recipe_dir

REPOSITORY = Path(__file__).parents[3]
PROTOCOL = Protocol("csi", "example.com/spec", "v1", "h1:other", "csi.proto")


def archive(content: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("example.com/spec@v1/csi.proto", content)
    return buffer.getvalue()


def test_what_is_not_what_was_pinned_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "_download", lambda _url: archive("syntax = 'proto3';"))
    with pytest.raises(HcpError, match="wrong checksum"):
        generate._fetch(PROTOCOL)


def test_what_is_no_archive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "_download", lambda _url: b"<html>log in first</html>")
    with pytest.raises(HcpError, match="no module archive"):
        generate._fetch(PROTOCOL)


def test_what_was_made_by_the_pinned_compiler_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    required = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]
    pinned = next(word for word in required if word.startswith("grpcio-tools=="))
    monkeypatch.setattr(generate, "installed_version", lambda _name: pinned.partition("==")[2])
    monkeypatch.setattr(generate, "_download", lambda url: pytest.fail(f"asked for {url}"))
    assert generate.generate() == []
    monkeypatch.setattr(generate, "installed_version", lambda _name: "0.0.1")
    monkeypatch.setattr(generate, "_fetch", lambda protocol: protocol.name.encode())
    monkeypatch.setattr(generate, "_compile", lambda *_words: None)
    assert generate.generate() == ["csi", "registration"]


def test_the_kubelets_protocol_is_that_of_the_kubernetes_we_build() -> None:
    kubelet = next(protocol for protocol in generate.protocols() if protocol.module == "k8s.io/kubelet")
    sums = (recipe_dir("kubernetes-1.36") / "go.sum").read_text().splitlines()
    assert f"{kubelet.module} {kubelet.version} {kubelet.sum}" in sums


def test_nothing_of_it_is_in_the_repository() -> None:
    listed = subprocess.run(
        ["git", "-C", REPOSITORY, "ls-files", "src/hcp/csi"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a checkout")
    assert not [line for line in listed.stdout.splitlines() if "_pb2" in line or line.endswith(".proto")]
    assert (HERE / "csi_pb2.py").exists()


def test_the_command_line_starts_without_grpc() -> None:
    program = "import sys; import hcp.cli.main, hcp.cli.tree, hcp.operator; print('grpc' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
