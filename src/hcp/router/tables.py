"""The rows of all Routes together: who has which, and what of them changed since HAProxy was told."""

from __future__ import annotations

from collections.abc import Mapping

from hcp.router.maps import ORDER, Row


class Tables:
    """What HAProxy's tables should hold. A change costs as much as it is large, however many rows there are.

    Every row knows whose it is, so that one that cannot be taken costs nobody else anything. Routes of one host share
    the row that says who ends its TLS: it stays until the last of them is gone.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str]] = {name: {} for name in ORDER}
        # What HAProxy may have otherwise; whoever tells it takes rows out of here.
        self.touched: set[Row] = set()
        self._of: dict[str, Mapping[Row, str]] = {}
        self._holders: dict[Row, dict[str, str]] = {}

    def put(self, owner: str, rows: Mapping[Row, str]) -> None:
        """The rows of a Route, in place of those it had; none when it is gone."""
        before = self._of.pop(owner, {})
        if rows:
            self._of[owner] = rows
        for row in before.keys() - rows.keys():
            holders = self._holders[row]
            del holders[owner]
            if not holders:
                del self._holders[row]
            self._settle(row)
        for row, value in rows.items():
            if before.get(row) != value:
                self._holders.setdefault(row, {})[owner] = value
                self._settle(row)

    def owners(self, row: Row) -> list[str]:
        return list(self._holders.get(row, ()))

    def _settle(self, row: Row) -> None:
        table, key = row
        holders = self._holders.get(row)
        value = next(iter(holders.values())) if holders else None
        if value != self.rows[table].get(key):
            self.touched.add(row)
            if value is None:
                del self.rows[table][key]
            else:
                self.rows[table][key] = value
