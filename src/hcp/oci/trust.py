"""Which CAs a registry's certificate may come from: the system's, a bundle for all, and one per registry."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Mapping

from hcp.errors import HcpError

# Not a certificate, so no registry's own CA is meant.
UNVERIFIED = "unverified"


def from_config_map(data: Mapping[str, str] | None) -> dict[str, str]:
    """The ConfigMap of additionalTrustedCA: keys are `host` or `host..port`, since a key cannot hold a colon."""
    return {key.replace("..", ":"): pem for key, pem in (data or {}).items()}


class Trust:
    """TLS settings per registry."""

    def __init__(
        self,
        ca_pem: str | bytes | None = None,
        registries: Mapping[str, str] | None = None,
        *,
        unverified: Collection[str] = (),
    ) -> None:
        """`unverified`: registries whose certificate is not looked at, because their user said so."""
        self._bundle = ca_pem.decode() if isinstance(ca_pem, bytes) else ca_pem or ""
        self._registries = dict(registries or {})
        self._unverified = unverified
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, registry: str) -> ssl.SSLContext:
        """The settings for one registry (`host` or `host:port`)."""
        if registry in self._unverified:
            if UNVERIFIED not in self._contexts:
                self._contexts[UNVERIFIED] = context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return self._contexts[UNVERIFIED]
        extra = self._registries.get(registry, "")
        if extra not in self._contexts:
            self._contexts[extra] = self._make(extra, registry)
        return self._contexts[extra]

    def _make(self, extra: str, registry: str) -> ssl.SSLContext:
        context = ssl.create_default_context()
        for pem, source in ((self._bundle, "the additional trust bundle"), (extra, f"the trusted CA for {registry}")):
            if not pem.strip():
                continue
            try:
                context.load_verify_locations(cadata=pem)
            except (ssl.SSLError, ValueError) as exc:
                raise HcpError(
                    f"A certificate in {source} cannot be read", cause=str(exc), hint="It must be PEM text."
                ) from exc
        return context
