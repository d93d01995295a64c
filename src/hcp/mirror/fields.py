"""Reading a document field by field, so that every error names its place: `mirror.operators[0].catalog`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from hcp.errors import HcpError


class Fields:
    """One mapping of a document, and where it is."""

    def __init__(self, value: Mapping[str, Any], place: str) -> None:
        self._value = value
        self._place = place

    def only(self, *names: str) -> None:
        """Refuses what nobody reads: a misspelled field would silently mirror too little."""
        for name in self._value:
            if name not in names:
                close = get_close_matches(str(name), names, 1)
                known = f"did you mean {close[0]}?" if close else f"known there: {', '.join(names)}"
                raise self.wrong(str(name), "there is no such field", known)

    def inside(self, name: str) -> Fields:
        value = self._value.get(name)
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise self.wrong(name, "it is no mapping", "write fields below it")
        return Fields(value, self._at(name))

    def each(self, name: str) -> Iterator[Fields]:
        for number, value in enumerate(self._list(name)):
            place = f"{self._at(name)}[{number}]"
            if not isinstance(value, Mapping):
                raise HcpError(f"{place} of the image set configuration is no mapping", hint="write - name: … there")
            yield Fields(value, place)

    def texts(self, name: str) -> list[str]:
        return [str(value) for value in self._list(name)]

    def text(self, name: str) -> str:
        value = self._value.get(name)
        if value is None:
            return ""
        if isinstance(value, Mapping | list | bool):
            raise self.wrong(name, "it is no text", "write one value, in quotes if it looks like a number")
        if isinstance(value, float):
            raise self.wrong(name, f"{value} reads as a number", f'write it in quotes: "{value}"')
        return str(value).strip()

    def need(self, name: str) -> str:
        found = self.text(name)
        if not found:
            raise self.wrong(name, "it is missing", f"write {name}: … there")
        return found

    def flag(self, name: str) -> bool:
        value = self._value.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, f"{value!r} is neither true nor false", "write true or false")
        return value

    def number(self, name: str) -> int:
        value = self._value.get(name) or 0
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, f"{value!r} is no whole number", "write how many GiB, such as 4")
        return value

    def wrong(self, name: str, cause: str, hint: str) -> HcpError:
        return HcpError(f"{self._at(name)} of the image set configuration cannot be used", cause=cause, hint=hint)

    def _list(self, name: str) -> list[Any]:
        value = self._value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(name, "it is no list", "write one entry per line, each with a dash")
        return value

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name
