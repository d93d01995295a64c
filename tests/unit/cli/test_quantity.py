"""Quantities come out the way Kubernetes writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.cli.engine import quantity


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("4096Mi", "4Gi"),
        ("8192Mi", "8Gi"),
        ("1.5Gi", "1536Mi"),
        ("1024Gi", "1Ti"),
        ("4000M", "4G"),
        ("4Gi", "4Gi"),
        ("0", "0"),
        ("0.5Ki", "512"),
        ("0.1Mi", "104857600m"),
        ("1e3", "1e3"),
        ("12e1", "120"),
        ("1E", "1E"),
        ("+8Gi", "8Gi"),
        ("-1Gi", "-1Gi"),
        (".5Gi", "512Mi"),
        ("5.", "5"),
        ("1500m", "1500m"),
        ("2000m", "2"),
        ("9999999E", "9223372036854775807"),
    ],
)
def test_canonical(text: str, written: str) -> None:
    assert quantity.canonical(text) == written


@pytest.mark.parametrize("text", ["", "Gi", "1GB", "1 Gi", "1..5", "1.2.3", "abc", "1e", "1ee3", "٤Gi", "1e9999", "+"])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity.canonical(text)


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    try:
        written = quantity.canonical(text)
    except ValueError:
        return
    assert quantity.parse(written)[0] == quantity.parse(text)[0]


@given(st.integers(0, 2**63 - 1), st.sampled_from(["", "Ki", "Mi", "Gi", "k", "M", "G", "m", "u"]))
def test_the_value_survives_and_stays(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    written = quantity.canonical(text)
    assert quantity.parse(written)[0] == quantity.parse(text)[0]
    assert quantity.canonical(written) == written
