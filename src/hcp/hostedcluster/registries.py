"""Which registries the operator goes to on a user's word, and how: what the administrator declared, and all others.

Declared are the registries given at install time, those in mirror sets, and those that the image configuration of the
management cluster names, for their CA or because they have no TLS. Namespace users can write none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.api.paths import at
from hcp.oci import Mirror
from hcp.oci.address_policy import AddressPolicy


class Registries:
    """The address policy of the operator's registry clients."""

    def __init__(
        self, inside: Callable[[], Iterable[str]], internal: Iterable[str] = (), insecure: Iterable[str] = ()
    ) -> None:
        """`inside`: the management cluster's own networks at this moment."""
        self._inside = inside
        self._internal = frozenset(internal)
        self._insecure = frozenset(insecure)

    def address_policy(
        self, image_config: Mapping[str, Any] | None, trusted: Iterable[str], mirrors: Iterable[Mirror]
    ) -> AddressPolicy:
        """`trusted`: registries with a CA in the image configuration; `mirrors`: those of the administrator."""
        sources = at(image_config, "spec.registrySources") or {}
        insecure = self._insecure | frozenset(sources.get("insecureRegistries") or ())
        mirrored = {place.partition("/")[0] for mirror in mirrors for place in mirror.mirrors}
        return AddressPolicy(
            guarded=True,
            declared=self._internal | insecure | frozenset(trusted) | mirrored,
            insecure=insecure,
            inside=self._inside,
        )
