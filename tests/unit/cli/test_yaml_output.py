"""Whatever is written can be read back as the same, by a YAML library that follows the old rules."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from hcp.cli.engine.yaml_output import dump

# Texts that a reader could take for something else, or that end a line, a document or a quote.
TRICKY = ["yes", "No", "null", "~", "1", "1.5", "0x1f", "1e3", "2026-01-01", "12:30", "=", "<<", "true", "{}", "[]"]
TRICKY += ["*a", "&a", "!a", "%a", "@a", "`a", "'", '"', "a:", ":a", "|", ">", "?", ".", "-", "+", "+1", ".5", "1_000"]
TRICKY += [
    "0o7",
    "017",
    "...",
    "... a",
    "---",
    "0b1",
    ".inf",
    "-.INF",
    ".NaN",
    "1:2:3",
    "#x",
    '2030-01-31"',
    "2030-01-31\\\\",
]
TRICKY += ["", " a", "a ", "a: b", "- a", "a #b", "--- a", "a\nb", "a\nb\n", "a\n\n", "\na", " a\nb", "a\n b", "a\tb"]
TRICKY += ["a \nb", "\u2028", "\x85", "\ufeff", "a\rb", "a\x00b", "\n", "a\n\nb", "a\n\n\n", "é", "日本"]
TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40) | st.sampled_from(TRICKY)
VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUE)
def test_round_trip(value: Any) -> None:
    assert yaml.safe_load(dump(value)) == value


def test_style() -> None:
    value = {"b": [{"y": 1, "x": "1"}, "z"], "a": {"n": None, "t": True, "e": {}, "l": []}, "c": "two\nlines\n"}
    assert dump(value) == (
        'a:\n  e: {}\n  l: []\n  "n": null\n  t: true\nb:\n- x: "1"\n  "y": 1\n- z\nc: |\n  two\n  lines\n'
    )


def test_addresses_and_times_stay_plain() -> None:
    for text in ("10.132.0.0/14", "0s", "5m0s", "32Gi", "quay.io/x/y:4.20.1", "10.1.1.1", "nvidia.com/gpu", ".data"):
        assert dump(text) == f"{text}\n"
