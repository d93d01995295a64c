"""From one release of a control plane to the next."""

from __future__ import annotations

import pytest

from hcp.api.versions import parse_version, upgrade_problem


@pytest.mark.parametrize(
    ("current", "wanted", "words"),
    [
        ("1.35.1", "1.35.4", None),
        ("1.35.4", "1.35.1", None),
        ("1.35.1", "1.36.0", None),
        ("4.19.3", "4.20.0", None),
        ("4.23.0", "5.0.1", None),
        ("1.36.0", "1.35.9", "older minor"),
        ("1.34.0", "1.36.0", "leaves out 1 minor"),
        ("4.18.0", "4.21.0", "leaves out 2 minor"),
        ("1.36.0", "4.23.0", "another kind"),
    ],
)
def test_control_planes_move_one_minor_at_a_time(current: str, wanted: str, words: str | None) -> None:
    found = upgrade_problem(parse_version(wanted), parse_version(current))
    assert found is None if words is None else words in str(found)


def test_the_first_release_is_free() -> None:
    assert upgrade_problem(parse_version("1.30.0"), None) is None
