"""Every annotation of the API is on its page."""

from __future__ import annotations

import re
from pathlib import Path

from hcp.api import names
from hcp.hostedcluster import ignored_fields

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "annotations.md").read_text()


def test_every_annotation_is_explained() -> None:
    mentioned = " ".join(re.findall(r"`([^`]+)`", PAGE)).replace(f"{names.GROUP}/COMPONENT", f"{names.GROUP}/ ")
    known = {value for name, value in vars(names).items() if name.startswith("ANNOTATION_")}
    plain = {value.removeprefix(f"{names.GROUP}/") for value in known}
    assert sorted(one for one in plain if not re.search(rf"(?<![\w-]){re.escape(one)}(?![\w-])", mentioned)) == []


def test_those_without_effect_are_told_as_such() -> None:
    section = PAGE.partition("### Kept without effect\n")[2].partition("\n## ")[0]
    told = set(re.findall(r"`([a-z-]+)`", section)) - {"images"}
    assert told == {one.removeprefix(f"{names.GROUP}/") for one in ignored_fields.ANNOTATIONS}
