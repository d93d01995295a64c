"""What annotations of a Route ask for: read strictly, since their words come from tenants. Pure.

A value that cannot be read refuses the Route, with a sentence that says what was expected; nothing of it goes further.
What reaches HAProxy is made here from numbers, choices and addresses that were understood, never from the text itself.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.router import hosts

PREFIX = "haproxy.router.openshift.io/"
RATES = "rate-limit-connections"
# Longest pause HAProxy can be told, in milliseconds; there is a sign in its numbers.
MAX_MILLISECONDS = 2**31 - 1
MAX_COUNT = 1_000_000_000
MAX_NETWORKS = 256
# Elements of a path that can be taken away before another is put in its place.
MAX_ELEMENTS = 8
BALANCES = ("leastconn", "random", "roundrobin", "source")
FORWARDINGS = ("append", "if-none", "never", "replace")
# As for everybody: how long a pod may take to answer, and a tunnel be quiet, in milliseconds.
TIMEOUT, TUNNEL = 60_000, 86_400_000
# What annotations ask for, in the order in which it is done.
PATIENCE, ANSWER, REWRITE, GUARD, LIMITS, BALANCE, FORWARDED = range(1, 8)
# Stands between what is told to HAProxy; no value has it.
SEPARATOR = "|"

_UNITS = {"us": 0.001, "ms": 1.0, "": 1.0, "s": 1000.0, "m": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
_TIME = re.compile(r"(\d{1,12})(us|ms|s|m|h|d)?", re.ASCII)
_COUNT = re.compile(r"\d{1,10}", re.ASCII)
_HSTS = re.compile(r"max-age=(\d{1,10})((;(includeSubDomains|preload)){0,2})", re.ASCII | re.IGNORECASE)
_REWRITE = re.compile(r"/[-A-Za-z0-9._~!$&'()*+,;=:@%/]*", re.ASCII)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Unreadable(ValueError):
    """An annotation that says nothing that can be done."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the requests of one Route are led; what is empty is as for everybody."""

    timeout: int = 0
    tunnel: int = 0
    balance: str = ""
    concurrent: int = 0
    tcp_rate: int = 0
    http_rate: int = 0
    networks: tuple[Network, ...] = ()
    hsts: str = ""
    forwarded: str = ""
    # What stands in place of so many elements of the path; None: the path stays.
    rewrite: str | None = None
    strip: int = 0
    # Annotations that nothing comes of here, with the reason: said in the status.
    ignored: tuple[str, ...] = field(default=())

    @property
    def any(self) -> bool:
        return replace(self, ignored=()) != Options()

    @property
    def rewrites(self) -> bool:
        """Whether pods are told something else than what the client said."""
        return bool(self.forwarded) or self.rewrite is not None

    @property
    def level(self) -> int:
        """How far a request has to go through HAProxy's rules: what is asked for often comes first."""
        wanted = {
            PATIENCE: self.timeout,
            ANSWER: self.tunnel or self.hsts,
            REWRITE: self.rewrite is not None,
            GUARD: self.networks,
            LIMITS: self.concurrent or self.tcp_rate or self.http_rate,
            BALANCE: self.balance,
            FORWARDED: self.forwarded,
        }
        return max((level for level, asked in wanted.items() if asked), default=0)

    def row(self, name: str) -> str:
        """As HAProxy looks it up: each word has its place, and none is empty."""
        guarded = "guarded" if self.networks else "open"
        rewrite = f"={self.rewrite}" if self.rewrite is not None else "-"
        numbers = (self.timeout or TIMEOUT, self.tunnel or TUNNEL)
        rates = (self.concurrent, self.tcp_rate, self.http_rate, self.strip)
        words = (self.hsts or "-", guarded, self.balance or "-", self.forwarded or "append", rewrite)
        return SEPARATOR.join((*map(str, numbers), *words[:2], *map(str, rates), *words[2:], name))


def read(route: Mapping[str, Any]) -> Options:
    """What a Route asks for by annotations. Raises Unreadable with a sentence for its status."""
    found = {
        name.removeprefix(PREFIX): str(value)
        for name, value in annotations_of(route).items()
        if name.startswith(PREFIX)
    }
    if not found:
        return Options()
    passed_on = at(route, "spec.tls.termination") == "passthrough"
    made = Options()
    for name, text in sorted(found.items()):
        reader = _READERS.get(name)
        if reader is None:
            made = _ignore(made, name, "is not known to this router")
            continue
        try:
            made = reader(made, text.strip())
        except ValueError as error:
            raise Unreadable(f"{PREFIX}{name} {hosts.shown(text)} cannot be followed: {error}.") from None
        if passed_on and name in _WEB_ONLY:
            made = _ignore(made, name, "says nothing for TLS that is passed on")
    if found.get(RATES, "").strip().lower() != "true":
        made = replace(made, concurrent=0, tcp_rate=0, http_rate=0)
    made = replace(made, strip=_elements(route)) if made.rewrite is not None else made
    return _of_passthrough(made) if passed_on else made


def _of_passthrough(made: Options) -> Options:
    """What can be done for a connection that nobody looks into."""
    if made.balance in ("leastconn", "roundrobin"):
        made = _ignore(replace(made, balance=""), "balance", "other than source or random needs TLS that ends here")
    kept = {"balance": made.balance, "concurrent": made.concurrent, "tcp_rate": made.tcp_rate}
    return Options(**kept, networks=made.networks, ignored=made.ignored)  # type: ignore[arg-type]


def _ignore(made: Options, name: str, why: str) -> Options:
    # Of names that others made up only so many are repeated.
    shown = f"{PREFIX}{name[: hosts.MAX_LABEL]} {why}"
    return replace(made, ignored=(*made.ignored, shown)) if len(made.ignored) < 10 else made


def _elements(route: Mapping[str, Any]) -> int:
    path = str(at(route, "spec.path") or "").strip("/")
    count = len(path.split("/")) if path else 0
    if count > MAX_ELEMENTS:
        raise Unreadable(f"{PREFIX}rewrite-target needs a path of at most {MAX_ELEMENTS} elements; this has {count}.")
    return count


def _milliseconds(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("a number with a unit is expected, one of us, ms, s, m, h, d")
    value = int(match[1]) * _UNITS[match[2] or ""]
    if not 0 < value <= MAX_MILLISECONDS:
        raise ValueError("more than nothing and at most 24 days are expected")
    return max(1, round(value))


def _count(text: str) -> int:
    if _COUNT.fullmatch(text) is None or not 0 < int(text) <= MAX_COUNT:
        raise ValueError("a whole number above 0 is expected")
    return int(text)


def _choice(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValueError(f"one of {', '.join(choices)} is expected")
    return text


def _switch(text: str) -> None:
    if text.lower() not in ("true", "false", ""):
        raise ValueError("true or false is expected")


def _networks(text: str) -> tuple[Network, ...]:
    words = text.split()
    if not words:
        raise ValueError("addresses or networks are expected, with spaces between them")
    if len(words) > MAX_NETWORKS:
        raise ValueError(f"at most {MAX_NETWORKS} addresses or networks are permitted")
    try:
        return tuple(dict.fromkeys(ipaddress.ip_network(word, strict=False) for word in words))
    except ValueError:
        raise ValueError("addresses or networks like 192.0.2.7 or 2001:db8::/32 are expected") from None


def _hsts(text: str) -> str:
    match = _HSTS.fullmatch("".join(text.split()))
    if match is None:
        raise ValueError("max-age=seconds is expected, then perhaps ;includeSubDomains and ;preload")
    more = match[2].lower()
    sub, pre = ";includeSubDomains" if "includesub" in more else "", ";preload" if "preload" in more else ""
    return f"max-age={int(match[1])}{sub}{pre}"


def _rewrite(text: str) -> str:
    if _REWRITE.fullmatch(text) is None or len(text) > hosts.MAX_PATH:
        raise ValueError("a path is expected that begins with / and has no spaces or special characters")
    return text.rstrip("/")


def _allow(made: Options, text: str) -> Options:
    return replace(made, networks=_networks(text))


def _allow_as_before(made: Options, text: str) -> Options:
    """The name it once had; who writes both means the newer one, which is read first."""
    return replace(made, networks=made.networks or _networks(text))


def _ignored_switch(made: Options, text: str) -> Options:
    """Nothing has to be done for it: cookies are never set."""
    _switch(text)
    return made


def _rates(made: Options, text: str) -> Options:
    _switch(text)
    return made


_READERS: dict[str, Callable[[Options, str], Options]] = {
    "timeout": lambda made, text: replace(made, timeout=_milliseconds(text)),
    "timeout-tunnel": lambda made, text: replace(made, tunnel=_milliseconds(text)),
    "balance": lambda made, text: replace(made, balance=_choice(text, BALANCES)),
    "disable_cookies": _ignored_switch,
    RATES: _rates,
    f"{RATES}.concurrent-tcp": lambda made, text: replace(made, concurrent=_count(text)),
    f"{RATES}.rate-tcp": lambda made, text: replace(made, tcp_rate=_count(text)),
    f"{RATES}.rate-http": lambda made, text: replace(made, http_rate=_count(text)),
    "ip_allowlist": _allow,
    "ip_whitelist": _allow_as_before,
    "hsts_header": lambda made, text: replace(made, hsts=_hsts(text)),
    "set-forwarded-headers": lambda made, text: replace(made, forwarded=_choice(text, FORWARDINGS)),
    "rewrite-target": lambda made, text: replace(made, rewrite=_rewrite(text)),
}
# A connection that is passed on has no requests, and no timeout but that of a quiet tunnel, which is a day.
_WEB_ONLY = (
    "timeout",
    "timeout-tunnel",
    f"{RATES}.rate-http",
    "hsts_header",
    "set-forwarded-headers",
    "rewrite-target",
)


def prefixes(network: Network) -> list[str]:
    """The network as beginnings of addresses in hexadecimal, with the family in front: what a table can look up."""
    size, family = (network.max_prefixlen // 4), network.version
    whole, rest = divmod(network.prefixlen, 4)
    text = f"{int(network.network_address):0{size}X}"
    if not rest:
        return [f"{family}/{text[:whole]}"]
    first = int(text[whole], 16)
    return [f"{family}/{text[:whole]}{digit:X}" for digit in range(first, first + 2 ** (4 - rest))]
