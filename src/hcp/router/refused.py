"""Routes that HAProxy did not take: they are left out until somebody changes them, so nothing is tried in a circle."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.router.admission import key_of

log = logging.getLogger(__name__)
Object = Mapping[str, Any]


class Refused:
    """Routes that HAProxy did not take, until somebody changes them."""

    def __init__(self) -> None:
        self._marks: dict[str, tuple[Any, ...]] = {}
        self.words: dict[str, str] = {}

    def add(self, route: Object, words: str) -> None:
        key = key_of(route)
        self._marks[key] = self._mark(route)
        self.words[key] = words
        log.warning("HAProxy does not take a Route", extra={"route": key, "words": words})

    def keep(self, key: str, route: Object | None) -> None:
        """Forget one that is gone or changed."""
        if key in self._marks and (route is None or self._mark(route) != self._marks[key]):
            del self._marks[key], self.words[key]

    @staticmethod
    def _mark(route: Object) -> tuple[Any, ...]:
        """Changes of annotations, and of a certificate in a Secret, leave the generation as it is."""
        meta, tls = route["metadata"], at(route, "spec.tls") or {}
        certificate = tls.get("certificate"), tls.get("key")
        return meta.get("uid"), meta.get("generation"), dict(annotations_of(route)), certificate
