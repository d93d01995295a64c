"""Answers with values nested deeper than Python can follow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.kube import bounded_json
from hcp.kube.bounded_json import MAX_DEPTH, depth, loads


def nested(levels: int, inside: str = '"}{[] \\" x"') -> str:
    return '{"s":"}]","a":[' * levels + inside + '],"z":1}' * levels


@pytest.mark.parametrize("levels", [1, 20, 49])
def test_what_any_kind_needs_is_as_it_was(levels: int) -> None:
    text = nested(levels)
    assert loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize("levels", [60, 300, 5000])
def test_what_is_deeper_is_cut_and_its_neighbours_stay(levels: int) -> None:
    value = loads(f'{{"before":[1,2],"deep":{nested(levels)},"after":{{"x":"y"}}}}'.encode())
    assert value["before"] == [1, 2] and value["after"] == {"x": "y"}
    assert depth(value) == MAX_DEPTH
    assert value["deep"]["z"] == 1


def test_both_ways_of_cutting_agree() -> None:
    for levels in (40, 49, 50, 51, 80, 200):
        text = nested(levels).encode()
        assert json.loads(bounded_json._cut(text)) == loads(text)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(_values)
def test_ordinary_values_are_left_alone(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        raw = text.encode("utf-8", "surrogatepass")
        assert json.loads(bounded_json._cut(raw).decode("utf-8", "surrogatepass")) == value
        assert bounded_json.shallow(json.loads(text)) == value


def test_which_paths_may_hold_depth() -> None:
    assert bounded_json.is_custom("/apis/hypershift.openshift.io/v1beta1/hostedclusters")
    assert bounded_json.is_custom("/apis/cluster.x-k8s.io/v1beta1/machines")
    assert not bounded_json.is_custom("/api/v1/secrets")
    assert not bounded_json.is_custom("/apis/apps/v1/deployments")
    assert not bounded_json.is_custom("/apis/networking.k8s.io/v1/networkpolicies")
