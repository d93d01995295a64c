"""Images that an annotation puts in place of a release's: `name=image,name=image`. Pure.

Who may set it is decided by admission (`hcp install`, the right `images`): an image runs with a control plane's keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from hcp.errors import HcpError
from hcp.oci.reference import Reference

MOST = 100


def parse(text: str) -> tuple[dict[str, str], list[str]]:
    """Images by component, and the entries that are none."""
    found: dict[str, str] = {}
    wrong = []
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    for entry in entries[:MOST]:
        name, _, image = entry.partition("=")
        try:
            Reference.parse(image)
        except HcpError:
            wrong.append(entry[:100])
        else:
            found[name.strip()] = image
    return found, wrong + [f"{len(entries) - MOST} more than {MOST} entries"] * (len(entries) > MOST)


def pairs(text: str) -> tuple[dict[str, str], list[str]]:
    """`source=mirror,source=mirror`, and the entries that are none."""
    entries = [entry.strip().partition("=") for entry in text.split(",") if entry.strip()][:MOST]
    good = {source.strip(): mirror.strip() for source, _, mirror in entries if source.strip() and mirror.strip()}
    return good, ["".join(one)[:100] for one in entries if not (one[0].strip() and one[2].strip())]


def applied(components: Mapping[str, str], text: str) -> dict[str, str]:
    """The release's images with those of the annotation in their place; others than the release has are left out."""
    found, _ = parse(text)
    return {name: found.get(name, image) for name, image in components.items()}


def problems(components: Mapping[str, str], text: str) -> list[str]:
    """What of the annotation has no effect."""
    found, wrong = parse(text)
    unknown = sorted(name for name in found if name not in components)
    said = [f"{entry!a} is not name=image" for entry in wrong]
    return said + [f"the release has no component {name[:100]!a}" for name in unknown]
