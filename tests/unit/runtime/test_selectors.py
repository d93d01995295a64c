"""Label selectors."""

from __future__ import annotations

import pytest

from hcp.runtime.selectors import matches


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        (None, True),
        ("", True),
        ("app", True),
        ("!app", False),
        ("!other", True),
        ("app=web", True),
        ("app == web", True),
        ("app=api", False),
        ("app!=api", True),
        ("other!=x", True),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app in (web, api)", True),
        ("app in (api),tier", False),
        ("app notin (api,db), tier in (front)", True),
        ("other in (x)", False),
        ("example.com/a-b=1", True),
    ],
)
def test_a_selector_fits_as_the_api_says(selector: str | None, fits: bool) -> None:
    obj = {"metadata": {"labels": {"app": "web", "tier": "front", "example.com/a-b": "1"}}}
    assert matches(selector, obj) is fits


def test_an_object_without_labels_fits_only_what_asks_for_none() -> None:
    assert not matches("app", {"metadata": {}})
    assert matches("!app", {})
