"""Versions as releases have them: semantic versioning, with an optional leading `v`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import total_ordering

from hcp.errors import HcpError

_PATTERN = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A version that can be compared; what follows a plus sign does not count."""

    numbers: tuple[int, int, int]
    before: tuple[str, ...] = ()
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Version:
        found = _PATTERN.fullmatch(text.strip())
        if found is None:
            raise HcpError(f'"{text}" is no version', hint="write it as 1.36.3 or 4.17.0-rc.1")
        major, minor, patch, before = found.groups()
        parts = tuple(before.split(".")) if before else ()
        return cls((int(major), int(minor), int(patch or 0)), parts, text.strip())

    def _key(self) -> tuple[object, ...]:
        # A version with a suffix comes before the one without; numbers come before words.
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.before)
        return (self.numbers, 0 if self.before else 1, parts)

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __str__(self) -> str:
        return self.text or ".".join(map(str, self.numbers))


def order(text: str) -> Version:
    """To sort versions by; one that is none sorts before all that are."""
    try:
        return Version.parse(text)
    except HcpError:
        return Version((-1, 0, 0), (), text)
