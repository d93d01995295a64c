"""Reading deep fields that may be missing."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.api import spec
from hcp.api.paths import annotations_of, at, block, conditions_of


@pytest.mark.parametrize(
    ("obj", "found"),
    [
        ({"a": {"b": {"c": 1}}}, 1),
        ({"a": {"b": {"c": 0}}}, 0),
        ({"a": {"b": {"c": False}}}, False),
        ({"a": {"b": {"c": ""}}}, "d"),
        ({"a": {"b": None}}, "d"),
        ({"a": [1]}, "d"),
        ({}, "d"),
        (None, "d"),
    ],
)
def test_what_is_missing_anywhere_on_the_way_is_the_default(obj: Any, found: Any) -> None:
    assert at(obj, "a.b.c", "d") == found


def test_blocks_are_never_none() -> None:
    assert block({"a": {"b": "text"}}, "a.b") == {}
    assert block({"a": {"b": {"c": 1}}}, "a.b") == {"c": 1}
    assert annotations_of({"metadata": {"annotations": None}}) == {}
    assert conditions_of({"status": {}}) == []


def test_networks_have_values_where_none_are_written() -> None:
    assert spec.service_networks({}) == ["172.31.0.0/16"]
    assert spec.advertise_address({}) == "172.20.0.1"
    six = {"networking": {"serviceNetwork": [{"cidr": "fd02::/112"}]}}
    assert spec.advertise_address(six) == "fd00::1"
    own = {"networking": {"apiServer": {"advertiseAddress": "192.0.2.1", "port": 7443}}}
    assert (spec.advertise_address(own), spec.api_port(own)) == ("192.0.2.1", 7443)
