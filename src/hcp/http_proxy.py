"""Which proxy a request goes through, by the rules that kubectl and every program in Go follow.

`HTTPS_PROXY` is for https, `HTTP_PROXY` for http. `NO_PROXY` names hosts, domains, addresses and networks that are
asked directly; the machine itself always is. Names in small letters count too, after those in capitals.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hcp.errors import HcpError


@dataclass(frozen=True)
class Proxies:
    """What an environment says."""

    http: str = field(default="", repr=False)
    https: str = field(default="", repr=False)
    direct: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Proxies:
        def get(name: str) -> str:
            return (environment.get(name) or environment.get(name.lower()) or "").strip()

        direct = tuple(part.strip().lower() for part in get("NO_PROXY").split(",") if part.strip())
        return cls(get("HTTP_PROXY"), get("HTTPS_PROXY"), direct)

    def __bool__(self) -> bool:
        return bool(self.http or self.https)

    def for_url(self, url: str) -> str | None:
        """The proxy for this URL; None: none."""
        parts = urlsplit(url)
        proxy = self.https if parts.scheme == "https" else self.http
        if not proxy or not parts.hostname:
            return None
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return None if self.is_direct(parts.hostname, port) else usable(proxy, "The environment's proxy")

    def is_direct(self, host: str, port: int) -> bool:
        host = host.lower().rstrip(".")
        address = _address(host)
        if host == "localhost" or (address is not None and address.is_loopback):
            return True
        return any(_covers(entry, host, address, port) for entry in self.direct)


def usable(text: str, source: str) -> str:
    """The URL of a proxy that we can talk to."""
    whole = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(whole)
        good = bool(parts.hostname) and parts.port != 0 and whole.isascii() and whole.isprintable() and " " not in whole
    except ValueError:
        good = False
    if not good:
        raise HcpError(f"{source} is not the URL of a proxy", hint="It looks like http://user:password@host:3128.")
    if parts.scheme != "http":
        raise HcpError(
            f"{source} is reached by {parts.scheme[:20]!a}, which is not followed",
            hint="Name an HTTP proxy, http://host:port; what goes through it is encrypted end to end.",
        )
    return whole


def without_password(proxy: str) -> str:
    """As it may be shown."""
    parts = urlsplit(proxy)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or 80}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _covers(entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, wanted = _split(entry)
    if wanted is not None and wanted != port:
        return False
    known = _address(name)
    if known is not None:
        return address == known
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _split(entry: str) -> tuple[str, int | None]:
    """Host and port, if it has one; an IPv6 address alone has colons too."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, int(rest[1:]) if rest.startswith(":") and rest[1:].isdecimal() else None
    name, colon, last = entry.rpartition(":")
    if colon and ":" not in name and last.isdecimal():
        return name, int(last)
    return entry, None
