"""The look-up tables HAProxy works from. Its configuration never changes; these do, and it takes them in while running.

`count` says how many addresses a host has, `address` gives each of them by number, `end` names hosts whose TLS the
router ends, `options` say what annotations ask for. What is here is the rows of one Route; `tables` has those of all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at
from hcp.router.admission import ANY, Decision, termination
from hcp.router.backends import SEPARATOR
from hcp.router.options import Options, prefixes
from hcp.router.scripted import CHOOSING, WORDS, encoded

TLS_COUNT = "tls-count"
TLS_ADDRESS = "tls-address"
TLS_END = "tls-end"
# Hosts of clusters that sleep: connections to them are held until they are awake.
TLS_ASLEEP = "tls-asleep"
# What annotations ask for, by the digest of a place or by the name of a TLS connection, and who may come there.
OPTIONS, TLS_OPTIONS, ALLOWED = "options", "tls-options", "allowed"
# Names that listeners of Gateways wait for, each with how requests come there. What no route of them has is not found.
LISTENERS = "listeners"
# Rules of hosts whose requests are told apart by more than paths, and what is changed for whom: the script's.
CHOICES, CHANGES = "choices", "changes"


# The addresses of places, by digest and number: the same for requests over TLS and without.
ADDRESS = "address"
# From places to rows, by how requests come: plainly, or where the router itself ends TLS.
HTTP, HTTPS = "http-count", "https-count"
# Addresses first: a host that grows must not be asked for an address that is not there yet. Nor is a place open before
# it is known who may come there. What goes away does so in the opposite order.
PLAIN = (ALLOWED, OPTIONS, TLS_OPTIONS, TLS_ADDRESS, TLS_COUNT, ADDRESS, HTTP)
ENDING = (HTTPS, TLS_END, LISTENERS, CHANGES, CHOICES)
ORDER = (*PLAIN[:-1], CHANGES, CHOICES, HTTP, TLS_ASLEEP, HTTPS, TLS_END, LISTENERS)
# Tables whose values HAProxy reads as numbers.
NUMBERS = (TLS_COUNT,)
# A table and a key in it.
Row = tuple[str, str]


# A row is sent in one command together with others; none of ours comes near this.
MAX_ROW = 4000
_WORD = re.compile(r"[!-~]+", re.ASCII)


def problem(key: str, value: str) -> str | None:
    """Why a row must not reach HAProxy: it would be read as several rows, or as a command."""
    if not (_WORD.fullmatch(key) and _WORD.fullmatch(value)) or key.startswith("#"):
        return "a name in it has characters that no table can hold"
    if len(key) + len(value) > MAX_ROW:
        return "its names are too long"
    return None


# What requests are looked up by ends so: host, path, this. Places are whole elements of paths.
END = "/|"
# Backends of HAProxy: as usual, with what annotations ask for, with requests that are rewritten, with HTTP/2, with TLS.
PODS, WITH_OPTIONS, REWRITING = "pods-http", "pods-options", "pods-rewriting"
PLAIN_HTTP2, TRUSTED = "pods-h2c", "pods-trusted"
# Stands where pods are spoken to without TLS.
NO_TRUST = "plain"
# Stands where pods speak HTTP/2 without TLS.
HTTP2 = "h2c"
# The row of a place whose requests are sent to HTTPS.
REDIRECT = "redirect"
# Between the words of a row that says where to send requests, and with which codes that can be said.
GOTO, GOTO_CODES = "|", (301, 302, 303, 307, 308)
# The rows of places that lead nowhere, or whose pods are not ready: nobody else's shorter path answers instead.
ANSWERS = {500: "answer-500", 503: "answer-503"}
# A wildcard of a Gateway is any number of labels, of a Route one.
DEEP = "**."


@dataclass(frozen=True, slots=True)
class Place:
    """A host, or `*.domain`, and a path in it."""

    name: str
    path: str
    exact: bool = False
    # Of a Gateway's routes one may have the place in plain HTTP, and another the same place with TLS.
    scheme: str = ""
    # What else is wanted of requests, and where this stands among the rules of its host: its list, its number in it.
    when: str = ""
    choice: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """A beginning of what requests are looked up by; an exact path is all of it, and so longer than any other."""
        return f"{self.name}{self.path or '/'}{END}" if self.exact else f"{self.name}{self.path.rstrip('/')}/"

    @property
    def digest(self) -> str:
        return _digest(f"{self.exact} {self.key}{self.scheme}{self.when}")


# Of a Route that asks for nothing by annotations.
AS_ALL = Options()


class Rows(dict[Row, str]):
    """The rows of one Route."""

    def add_tls(self, name: str, addresses: list[str], options: Options = AS_ALL) -> None:
        if addresses:
            if options.any:
                self._options(TLS_OPTIONS, name, _digest(name), options)
            self[TLS_COUNT, name] = str(len(addresses))
            self._addresses(TLS_ADDRESS, name, addresses)

    def add_web(
        self,
        table: str,
        place: Place,
        addresses: list[str],
        trust: str = "",
        options: Options = AS_ALL,
        changes: str = "",
    ) -> None:
        """The longest place that fits is taken; the value names it by its digest, and who the pod's TLS is checked by.

        A place is whole elements of a path: requests are looked up with a slash behind them. How far its requests have
        to go through what annotations ask for stands at the end, if they ask for anything.
        """
        if addresses:
            digest, level = place.digest, f"@{options.level}" if options.any else ""
            plain = REWRITING if options.rewrites or changes else WITH_OPTIONS if level else PODS
            backend = {"": plain, HTTP2: PLAIN_HTTP2}.get(trust, TRUSTED)
            self._put(table, place, f"{len(addresses)}@{digest}@{backend}@{trust or NO_TRUST}{level}")
            if changes:
                self[CHANGES, digest] = changes
            if level:
                self._options(OPTIONS, digest, digest, options)
            self._addresses(ADDRESS, digest, addresses)

    def add_asleep(self, name: str, options: Options = AS_ALL) -> None:
        """Whom annotations keep out does not wake it either."""
        if options.any:
            self._options(TLS_OPTIONS, name, _digest(name), options)
        self[TLS_ASLEEP, name] = "1"

    def add_end(self, name: str) -> None:
        self[TLS_END, name] = "1"

    def add_redirect(self, place: Place) -> None:
        self[HTTP, place.key] = REDIRECT

    def add_goto(self, table: str, place: Place, row: str) -> None:
        self._put(table, place, row)

    def add_answer(self, table: str, place: Place, code: int) -> None:
        self._put(table, place, ANSWERS[code])

    def add_refused(self, name: str) -> None:
        """Connections with this name are closed: there is no address, and nobody else is to show a certificate."""
        self[TLS_COUNT, name] = "0"

    def _put(self, table: str, place: Place, row: str) -> None:
        """The script reads of a host with choices how many there are, and then one after the other."""
        if (choice := place.choice) is None:
            self[table, place.key] = row
            return
        self[table, f"{place.name}/"] = f"{CHOOSING}{choice['list']}{CHOOSING}{choice['of']}"
        words = ("e" if place.exact else "p", encoded(place.path.rstrip("/") or "/"), place.when or WORDS * 2, row)
        self[CHOICES, f"{choice['list']}#{choice['number']}"] = WORDS.join(words)

    def _addresses(self, table: str, key: str, addresses: list[str]) -> None:
        for number, address in enumerate(addresses):
            self[table, f"{key}#{number}"] = address

    def _options(self, table: str, key: str, name: str, options: Options) -> None:
        self[table, key] = options.row(name)
        for network in options.networks:
            for prefix in prefixes(network):
                self[ALLOWED, f"{name}/{prefix}"] = "1"


def rows_of(
    decision: Decision,
    route: Mapping[str, Any],
    addresses: list[str],
    *,
    http2: bool = False,
    asleep: bool = False,
    deep: bool = False,
) -> Rows:
    """What tables hold of a Route. One without ready endpoints is left out: its clients are refused at once.

    `http2`: whether its pods speak HTTP/2 without TLS; `asleep`: whether its clients wait until it has pods; `deep`:
    whether a wildcard is any number of labels.
    """
    rows = Rows()
    if not decision.admitted:
        return rows
    names = [decision.name]
    if deep and decision.wildcard:
        names.append(DEEP + decision.name.removeprefix("*."))
    for name in names:
        _add(rows, name, decision, route, addresses, http2, asleep)
    return rows


def _add(
    rows: Rows, name: str, decision: Decision, route: Mapping[str, Any], addresses: list[str], http2: bool, asleep: bool
) -> None:
    spec, how = route.get("spec") or {}, termination(route)
    # No object of a user can have such a name.
    made_here = SEPARATOR in decision.key
    beyond = (spec.get("when") or "", spec.get("choice")) if made_here else ("", None)
    path, exact = str(spec.get("path") or ""), bool(spec.get("exactPath"))
    place = Place(name, path, exact, str(spec.get("scheme") or ""), *beyond)
    insecure = at(spec, "tls.insecureEdgeTerminationPolicy")
    trust = trust_name(str(at(spec, "tls.destinationCACertificate"))) if how == "reencrypt" else ""
    trust = trust or (HTTP2 if http2 else "")
    goto, answer = (spec.get("redirect"), None if addresses else spec.get("answers")) if made_here else (None, None)
    if how == "passthrough":
        rows.add_tls(name, addresses, decision.options)
        if answer:
            rows.add_refused(name)
        if asleep and not addresses and not decision.wildcard:
            rows.add_asleep(name, decision.options)
    else:
        if how and name != ANY:
            rows.add_end(name)
        for table in ([HTTPS] if how else []) + ([HTTP] if not how or insecure == "Allow" else []):
            if goto:
                rows.add_goto(table, place, goto)
            elif answer:
                rows.add_answer(table, place, answer)
            else:
                changes = str(spec.get("changes") or "") if made_here else ""
                rows.add_web(table, place, addresses, trust, decision.options, changes)
    if how and insecure == "Redirect":
        rows.add_redirect(place)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def trust_name(authority: str) -> str:
    """How HAProxy calls who checks the certificates of pods."""
    return f"ca-{hashlib.sha256(authority.encode()).hexdigest()[:24]}"
