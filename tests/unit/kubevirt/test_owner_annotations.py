"""What a cluster's owner writes on its tenants' load balancers."""

from __future__ import annotations

import pytest

from hcp.api.names import ANNOTATION_LOAD_BALANCERS
from hcp.kubevirt import owner_annotations


def given(text: str) -> dict[str, str]:
    return {ANNOTATION_LOAD_BALANCERS: text, "example.com/other": "x"}


def test_a_json_object_of_texts_is_followed() -> None:
    text = '{"metallb.io/address-pool": "tenants", "plain": ""}'
    assert owner_annotations.wanted(given(text)) == {"metallb.io/address-pool": "tenants", "plain": ""}
    assert owner_annotations.problem(given(text)) == ""


def test_nobody_asks_for_nothing() -> None:
    assert owner_annotations.wanted({}) == {} and owner_annotations.problem({}) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pool=tenants", "not a JSON object"),
        ('["a"]', "not a JSON object"),
        ('{"a": 1}', "not a JSON object"),
        ("[" * 5000, "not a JSON object"),
        ('{"a b": "c"}', "no name of an annotation"),
        ('{"UP.example/x": "c"}', "no name of an annotation"),
        ('{"": "c"}', "no name of an annotation"),
        ('{"a": "' + "x" * 20_000 + '"}', "longer than"),
    ],
)
def test_what_cannot_be_read_is_not_followed_and_said(text: str, words: str) -> None:
    assert owner_annotations.wanted(given(text)) == {}
    assert words in owner_annotations.problem(given(text))


def test_machines_of_ones_own_have_no_load_balancers() -> None:
    assert "machines of your own" in owner_annotations.problem(given("{}"), unmanaged=True)
