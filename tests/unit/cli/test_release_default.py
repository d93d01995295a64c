"""Choosing a release out of a stream, and reading the supported versions."""

from __future__ import annotations

import pytest

from hcp.cli.release_default import newest, supported
from hcp.errors import HcpError

TAGS = [
    {"name": "4.20.9", "pullSpec": "r:4.20.9"},
    {"name": "4.20.10", "pullSpec": "r:4.20.10"},
    {"name": "4.21.0-rc.1", "pullSpec": "r:4.21.0-rc.1"},
    {"name": "4.22.0", "pullSpec": "r:4.22.0"},
    {"name": "odd", "pullSpec": "r:odd"},
]


def test_newest_supported_final_release() -> None:
    assert newest(TAGS, ["4.20", "4.21"]) == "r:4.20.10"
    assert newest(TAGS, ["4.22", "4.20"]) == "r:4.22.0"
    assert newest(TAGS, ["4.1x"]) == ""
    assert newest([], ["4.20"]) == ""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "no key supported-versions"),
        ({"supported-versions": "nonsense"}, "versions"),
        ({"supported-versions": "[]"}, "versions"),
        ({"supported-versions": '{"versions": null}'}, "versions"),
    ],
)
def test_a_broken_config_map_is_explained(data: dict[str, str], words: str) -> None:
    with pytest.raises(HcpError, match=words):
        supported({"data": data})


def test_supported_versions() -> None:
    assert supported({"data": {"supported-versions": '{"versions": ["1.36", "1.35"]}'}}) == ["1.36", "1.35"]
