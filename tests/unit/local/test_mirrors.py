"""What a node's containerd is told of mirror sets: pure, but for the folder they are written to."""

from __future__ import annotations

import json
from pathlib import Path

from hcp.local.node.mirrors import MARK, wanted, write

SETS = [
    {
        "metadata": {"name": "a"},
        "spec": {"imageDigestMirrors": [{"source": "quay.io/team/tool", "mirrors": ["mirror.lan:5000/site/renamed"]}]},
    },
    {"metadata": {"name": "b"}, "spec": {"imageTagMirrors": [{"source": "../etc", "mirrors": ["mirror.lan:5000/x"]}]}},
]


def test_mirrors_are_asked_by_the_nodes_own_server(tmp_path: Path) -> None:
    found = wanted(tmp_path, SETS, {"mirror.lan:5000": "CA"}, "")
    assert sorted(path.removeprefix(f"{tmp_path}/") for path in found.files) == [
        "mirror.lan:5000/ca.crt",
        "mirror.lan:5000/hosts.toml",
        "quay.io/hosts.toml",
    ]
    assert '[host."http://127.0.0.1:2953"]' in found.files[f"{tmp_path}/quay.io/hosts.toml"]
    config = json.loads(found.config)
    assert config["rules"] == [{"source": "quay.io/team/tool", "mirrors": ["mirror.lan:5000/site/renamed"]}]
    assert config["authorities"] == {"mirror.lan:5000": f"{tmp_path}/mirror.lan:5000/ca.crt"}


def test_only_files_of_ours_come_and_go(tmp_path: Path) -> None:
    theirs = tmp_path / "registry.hcp.test:5000" / "hosts.toml"
    theirs.parent.mkdir()
    theirs.write_text("server = 1\n")
    files = wanted(tmp_path, SETS, {"mirror.lan:5000": "CA", "registry.hcp.test:5000": "other"}, "").files
    assert write(tmp_path, files)
    assert not write(tmp_path, files), "the same again changes nothing"
    assert theirs.read_text() == "server = 1\n"
    assert (tmp_path / "quay.io/hosts.toml").read_text().startswith(MARK)
    assert write(tmp_path, wanted(tmp_path, [], {}, "").files)
    assert [path.name for path in tmp_path.iterdir()] == ["registry.hcp.test:5000"]


def test_without_rules_no_server_runs(tmp_path: Path) -> None:
    assert not wanted(tmp_path, [], {"mirror.lan:5000": "CA"}, "").rules
    assert wanted(tmp_path, SETS, {}, "").rules
