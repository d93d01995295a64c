"""Where things are published, how references move, and what is said to whoever installs."""

from __future__ import annotations

import pytest

from hcp.errors import HcpError
from hcp.publish.line import install_words
from hcp.publish.rewrite import moved_files, moves
from hcp.publish.run import Published
from hcp.publish.target import Target

DIGEST = "sha256:" + "e" * 64


@pytest.mark.parametrize(
    ("text", "registry", "path"),
    [
        ("docker://registry.example.com/team/hcp", "registry.example.com", "team/hcp"),
        ("registry.example.com/team/hcp/", "registry.example.com", "team/hcp"),
        ("docker://localhost:5000", "localhost:5000", ""),
        ("docker://10.1.2.3:5000/a", "10.1.2.3:5000", "a"),
        ("docker://docker.io/team", "docker.io", "team"),
    ],
)
def test_a_place_to_push_to_is_understood(text: str, registry: str, path: str) -> None:
    assert Target.parse(text) == Target(registry, path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "team/hcp",
        "docker://r.example.com/a:1",
        f"r.example.com/a@{DIGEST}",
        "oci://r.example.com/a",
        "r.example.com/A",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(HcpError, match="no place to push to") as caught:
        Target.parse(text)
    assert caught.value.cause


def test_references_move_with_their_digests() -> None:
    old = f"registry.hcp.test:5000/hcp/etcd@{DIGEST}"
    moved = moves([old], Target("r.example.com", "team"))
    assert moved == {old: f"r.example.com/team/etcd@{DIGEST}"}
    text = f'{{"a": "{old}", "b": "{{\\"c\\": \\"{old}\\"}}"}}'.encode()
    assert b"hcp.test" not in moved_files({"f": text}, moved)["f"]
    with pytest.raises(HcpError, match="not named by digest"):
        moves(["registry.hcp.test:5000/hcp/etcd:1"], Target("r.example.com"))


def test_the_install_line_says_all_that_clusters_need() -> None:
    target = Target("r.example.com", "team")
    newest = {"1.35.4": "r.example.com/team/release@old", "1.36.3": "r.example.com/team/release@new"}
    words = install_words(Published(target, "r.example.com/team/hcp@x", newest), ca="ca.pem", pull_secret="auth.json")
    assert words == [
        *("install", "--image", "r.example.com/team/hcp@x"),
        *("--default-release-image", "r.example.com/team/release@new", "--supported-versions", "1.36,1.35"),
        *("--pull-secret", "auth.json", "--additional-trust-bundle", "ca.pem"),
    ]
    assert "--insecure-registries" in install_words(Published(target, "x", {}), insecure=True)
