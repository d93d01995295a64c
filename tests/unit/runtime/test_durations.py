from __future__ import annotations

import pytest

from hcp.runtime import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45s", 45),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("1m250ms", 60.25),
        (".5m", 30),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_what_go_writes_is_read(text: str, seconds: float) -> None:
    assert durations.parse(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "5", "m", "-5s", "5 m", "1h30", "1..5h", "٣s", "5d", "5s\n"])
def test_anything_else_is_not_guessed_at(text: str) -> None:
    assert durations.parse(text) is None
