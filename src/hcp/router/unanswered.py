"""HAProxy's rules for what no pod answers, where Gateways are served: codes, redirects, closed connections.

Only what found nothing comes here. Like all rules these are constant, and look up what they need.
"""

from __future__ import annotations

from hcp.router import maps
from hcp.router.options import MAX_ELEMENTS

# How many labels deep a wildcard of a Gateway is looked for.
DEPTH = 5
_NOT_FOUND = "No route of a Gateway answers this."
_SAYS = {500: "This route leads nowhere.", 503: "No pod of this route is ready."}


def deeper(ends: str, first: int = 2, instead: str = maps.DEEP[:-1]) -> list[str]:
    """Converters that put a wildcard in place of ever more labels. `ends`: what no label has in it."""
    label = f"[^{ends}]*"
    return [f"regsub(^{'[.]'.join([label] * count)},{instead})" for count in range(first, DEPTH + 1)]


def of_connections(verb: str, count: str, end: str, listeners: str, missing: str) -> list[str]:
    """Deeper wildcards, then whether a listener that passes TLS on waits for the name: without a route it is closed."""
    lines = [f"{verb} set-var(sess.end) var(sess.key),map_str({end}) {missing}"]
    for one in deeper("."):
        lines += [
            f"{verb} set-var(sess.key) var(sess.host),{one} {missing}",
            f"{verb} set-var(sess.n) var(sess.key),map_str_int({count}) {missing}",
            f"{verb} set-var(sess.end) var(sess.key),map_str({end}) {missing}",
        ]
    ways = ["", *(f",{one}" for one in deeper(".", 1, "*"))]
    waits = "{ var(sess.waits) -m found }"
    for way in ways:
        lines.append(
            f"{verb} set-var(sess.waits) var(sess.host){way},concat(/tls),map_str({listeners}) {missing} !{waits}"
        )
    lines.append(f"{verb} set-var(sess.waits) str(*/tls),map_str({listeners}) {missing} !{waits}")
    # A route that leads nowhere has no address at all.
    return [*lines, f"{verb} reject {missing} {waits}", f"{verb} reject if {{ var(sess.n) -m int 0 }}"]


def of_requests(listeners: str) -> list[str]:
    verb, row = "http-request", "var(txn.row)"
    answers = [
        f'{verb} return status {code} content-type text/plain string "{_SAYS[code]}" if {{ {row} -m str {word} }}'
        for code, word in maps.ANSWERS.items()
    ]
    return [*answers, *_redirects(verb, row), *_not_found(verb, listeners)]


def _redirects(verb: str, row: str) -> list[str]:
    """What a row says: goto, code, scheme, host, port, path, how many elements that stands for."""
    wanted = f"{{ {row} -m beg goto }}"

    def field(number: int) -> str:
        return f"{row},field({number},{maps.GOTO})"

    def same(number: int) -> str:
        return f"{{ {field(number)} -m str * }}"

    lines = [
        f"{verb} set-var(txn.where) {field(4)} if {wanted} !{same(4)}",
        f"{verb} set-var(txn.where) req.hdr(host),field(1,:) if {wanted} {same(4)}",
        f"{verb} set-var(txn.where) {field(3)},concat(://,txn.where) if {wanted}",
        f"{verb} set-var(txn.port) {field(5)} if {wanted} !{same(5)}",
        f"{verb} set-var(txn.where) var(txn.where),concat(,txn.port) if {wanted} !{same(5)}",
        f"{verb} set-var(txn.rest) path if {wanted} !{{ {field(7)} -m str all }}",
    ]
    for number in range(1, MAX_ELEMENTS + 1):
        leading = "/[^/]*" * number
        lines.append(f"{verb} set-var(txn.rest) path,regsub(^{leading},) if {wanted} {{ {field(7)} -m str {number} }}")
    lines += [
        f"{verb} set-var(txn.new) {field(6)},regsub(^=,),concat(,txn.rest) if {wanted} !{same(6)}",
        f"{verb} set-var(txn.new) path if {wanted} {same(6)}",
        f"{verb} set-var(txn.new) str(/) if {wanted} !{{ var(txn.new) -m beg / }}",
        f"{verb} set-var(txn.where) var(txn.where),concat(,txn.new) if {wanted}",
        f"{verb} set-var(txn.query) query if {wanted}",
        f"{verb} set-var(txn.where) var(txn.where),concat(?,txn.query) if {wanted} {{ query -m found }}",
    ]
    return lines + [
        f"{verb} redirect location %[var(txn.where)] code {code} if {{ {row} -m beg goto|{code}| }}"
        for code in maps.GOTO_CODES
    ]


def _not_found(verb: str, listeners: str) -> list[str]:
    """Names that a listener waits for, by any of its ways: `host/http`, `*.domain/https`, `*/http`."""
    missing = "if !{ var(txn.listener) -m found }"
    ways = ["", *(f",{one}" for one in deeper("./", 1, "*"))]
    return [
        f"{verb} set-var(txn.scheme) fe_name",
        f"{verb} set-var(txn.page) req.hdr(host),lower,field(1,:),concat(/,txn.scheme)",
        *(f"{verb} set-var(txn.listener) var(txn.page){way},map_str({listeners}) {missing}" for way in ways),
        f"{verb} set-var(txn.listener) str(*),concat(/,txn.scheme),map_str({listeners}) {missing}",
        f'{verb} return status 404 content-type text/plain string "{_NOT_FOUND}"'
        " if !{ var(txn.row) -m found } { var(txn.listener) -m found }",
    ]
