"""HAProxy's rules for what annotations ask for. They are constant too: every value is looked up.

Requests of Routes without such annotations never come here: they have a backend of their own, or leave at once. The
others leave as soon as nothing that follows is asked for them.
"""

from __future__ import annotations

from hcp.router.options import BALANCE, FORWARDED, GUARD, LIMITS, MAX_ELEMENTS, PATIENCE, REWRITE, SEPARATOR

# Backends that hold nothing but counters, by what they count: clients of a Route, its turns, requests at an address.
CLIENTS, TURNS, BUSY = "count-clients", "count-turns", "count-busy"
# Seconds over which rates are counted, as OpenShift counts them.
PERIOD = "3s"
TOO_MANY = 429
_ORDER = (
    "timeout",
    "tunnel",
    "hsts",
    "guard",
    "concurrent",
    "tcprate",
    "httprate",
    "strip",
    "balance",
    "forwarded",
    "rewrite",
    "id",
)


def counters() -> list[str]:
    """Entries are made as they are needed; what is not asked for any more goes away."""
    return [
        f"backend {CLIENTS}",
        "  stick-table type string len 80 size 100k expire 30s"
        f" store conn_cur,conn_rate({PERIOD}),http_req_rate({PERIOD})",
        f"backend {TURNS}",
        "  stick-table type string len 40 size 20k expire 10m store gpc0",
        f"backend {BUSY}",
        "  stick-table type string len 64 size 20k expire 10m store conn_cur",
    ]


def _field(name: str) -> str:
    return f"field({_ORDER.index(name) + 1},{SEPARATOR})"


def _word(scope: str, name: str) -> str:
    return f"var({scope}.opt),{_field(name)}"


def _client(verb: str, scope: str, allowed: str) -> list[str]:
    """Who may come at all, by address: the longest beginning that the table has."""
    have = f"if {{ var({scope}.opt) -m found }}"
    guarded = f"{{ {_word(scope, 'guard')} -m str guarded }}"
    return [
        f"{verb} set-var({scope}.id) {_word(scope, 'id')} {have}",
        f"{verb} set-var({scope}.hex) src,hex {have}",
        f"{verb} set-var({scope}.fam) str(4) {have}",
        f"{verb} set-var({scope}.fam) str(6) if {{ var({scope}.hex) -m len 32 }}",
        f"{verb} set-var({scope}.who) var({scope}.id),concat(/,{scope}.fam),concat(/,{scope}.hex) {have}",
        f"{verb} {'deny deny_status 403' if scope == 'txn' else 'reject'} if {{ var({scope}.opt) -m found }} {guarded}"
        f" !{{ var({scope}.who),map_beg({allowed}) -m found }}",
    ]


def _limit(verb: str, scope: str, name: str, counted: str) -> list[str]:
    """Refuse from the wanted number on."""
    refuse = f"deny deny_status {TOO_MANY}" if scope == "txn" else "reject"
    reached = f"{{ {counted},sub({scope}.{name}) ge 0 }}"
    return [
        f"{verb} set-var({scope}.{name}) {_word(scope, name)} if {{ var({scope}.opt) -m found }}",
        f"{verb} {refuse} if {{ var({scope}.{name}) -m int gt 0 }} {reached}",
    ]


def _counted(verb: str, scope: str) -> str:
    wanted = [f"{{ {_word(scope, name)} -m int gt 0 }}" for name in ("concurrent", "tcprate", "httprate")]
    return f"{verb} track-sc0 var({scope}.who) table {CLIENTS} if {' or '.join(wanted)}"


def of_connections(table: str, allowed: str, hello: str, *, counting: bool) -> list[str]:
    """For TLS that is passed on: who may connect, how many at a time, how often. Each is asked and counted once."""
    verb = "tcp-request content"
    look = f"{verb} set-var(sess.opt) var(sess.key),map_str({table}) {hello}"
    if not counting:
        return [look]
    return [
        look,
        *_client(verb, "sess", allowed),
        _counted(verb, "sess"),
        # The connection that is looked at is counted already.
        *_limit(verb, "sess", "concurrent", "sc_conn_cur(0),sub(1)"),
        *_limit(verb, "sess", "tcprate", "sc_conn_rate(0),sub(1)"),
    ]


def start(attempt: int) -> list[str]:
    """Which pod is tried first: by the client's port, since kernels give even ones by half of it, or by its address."""
    verb = "tcp-request content"
    source = f"if {{ {_word('sess', 'balance')} -m str source }}"
    return [
        f"{verb} set-var(sess.start) src_port,div(2),add({attempt})",
        f"{verb} set-var(sess.start) src,hex,crc32(1),add({attempt}) {source}",
    ]


def of_requests(table: str, allowed: str, address: str, *, usual: bool) -> list[str]:
    """Everything for requests of a Route with options, in the backend.

    `usual`: all that come there have options, and none says what pods are told about clients, or of which path.
    """
    verb, hsts = "http-request", _word("txn", "hsts")
    return [
        *(_usual() if usual else _whoever()),
        f"{verb} set-timeout server var(txn.key),map_str({table}),{_field('timeout')}",
        # Most stop here: the end of the row is all that is asked for them.
        f"{verb} allow if {{ var(txn.row) -m end @{PATIENCE} }}",
        f"{verb} set-var(txn.level) var(txn.row),field(5,@),add(0)",
        f"{verb} set-var(txn.opt) var(txn.key),map_str({table})",
        f"{verb} set-timeout tunnel {_word('txn', 'tunnel')}",
        f"{verb} set-var(txn.hsts) {hsts} if {{ fe_name https }} {{ {hsts} -m beg max }}",
        *([] if usual else [_leave(REWRITE), *_rewrite()]),
        _leave(GUARD),
        *_client(verb, "txn", allowed),
        _leave(LIMITS),
        _counted(verb, "txn"),
        *_limit(verb, "txn", "concurrent", "sc_conn_cur(0),sub(1)"),
        *_limit(verb, "txn", "tcprate", "sc_conn_rate(0),sub(1)"),
        *_limit(verb, "txn", "httprate", "sc_http_req_rate(0),sub(1)"),
        _leave(BALANCE),
        *_balance(address),
        *([] if usual else [_leave(FORWARDED), *_forwarded()]),
        "http-response set-header Strict-Transport-Security %[var(txn.hsts)] if { var(txn.hsts) -m found }",
    ]


def _usual() -> list[str]:
    verb = "http-request set-header"
    return ["option forwardfor", f"{verb} X-Forwarded-Host %[req.hdr(host)]", f"{verb} X-Forwarded-Proto %[fe_name]"]


def _whoever() -> list[str]:
    """Also those without options, and those that say what pods are told about clients."""
    verb, usual = "http-request", f"unless {{ var(txn.row) -m end @{FORWARDED} }}"
    return [
        f"{verb} add-header X-Forwarded-For %[src] {usual}",
        f"{verb} set-header X-Forwarded-Host %[req.hdr(host)] {usual}",
        f"{verb} set-header X-Forwarded-Proto %[fe_name] {usual}",
        f"{verb} allow unless {{ var(txn.row),field(5,@) -m found }}",
    ]


def _leave(before: int) -> str:
    """Rules end here for requests that need nothing of what follows."""
    return f"http-request allow if {{ var(txn.level) -m int lt {before} }}"


def _balance(address: str) -> list[str]:
    """Another pod than the one chosen by chance. `leastconn`: the less busy one of two, by our own requests there."""
    verb = "http-request"

    def when(how: str) -> str:
        return f"{{ var(txn.how) -m str {how} }}"

    def pick(into: str, number: str, condition: str) -> list[str]:
        return [
            f"{verb} set-var(txn.i) {number},mod(txn.n) if {condition}",
            f"{verb} set-var({into}) var(txn.key),concat(\\#,txn.i),map_str({address}) if {condition}",
        ]

    least = when("leastconn")
    return [
        f"{verb} set-var(txn.how) {_word('txn', 'balance')}",
        *pick("txn.to", "src,hex,crc32(1)", when("source")),
        f"{verb} track-sc1 var(txn.key) table {TURNS} if {when('roundrobin')}",
        *pick("txn.to", "sc_inc_gpc0(1)", when("roundrobin")),
        *pick("txn.other", "rand", least),
        f"{verb} set-var(txn.load) var(txn.to),table_conn_cur({BUSY}) if {least}",
        f"{verb} set-var(txn.to) var(txn.other) if {least} {{ var(txn.other) -m found }}"
        f" {{ var(txn.other),table_conn_cur({BUSY}),sub(txn.load) lt 0 }}",
        f"{verb} track-sc2 var(txn.to) table {BUSY} if {least}",
        f"{verb} set-dst var(txn.to),field(1,@)",
        f"{verb} set-dst-port var(txn.to),field(2,@)",
    ]


def _forwarded() -> list[str]:
    """What pods are told about the client, where a Route says how. All others are told the usual."""
    verb, how = "http-request", _word("txn", "forwarded")
    headers = {
        "X-Forwarded-For": "%[src]",
        "X-Forwarded-Host": "%[req.hdr(host)]",
        "X-Forwarded-Proto": "%[fe_name]",
    }
    lines = [f"{verb} del-header {name} if {{ {how} -m str replace }}" for name in headers]
    for name, value in headers.items():
        unwanted = f"{{ {how} -m str never }}"
        there = f"{{ {how} -m str if-none }} {{ req.hdr({name}) -m found }}"
        action = "add-header" if name == "X-Forwarded-For" else "set-header"
        lines.append(f"{verb} {action} {name} {value} unless {unwanted} or {there}")
    return lines


def _rewrite() -> list[str]:
    verb = "http-request"
    wanted = "{ var(txn.new) -m found }"
    lines = [
        f"{verb} set-var(txn.new) {_word('txn', 'rewrite')},regsub(^=,) if {{ {_word('txn', 'rewrite')} -m beg = }}",
        f"{verb} set-var(txn.rest) path if {wanted}",
        f"{verb} set-var(txn.strip) {_word('txn', 'strip')},add(0) if {wanted}",
    ]
    for count in range(1, MAX_ELEMENTS + 1):
        leading, this = "/[^/]*" * count, f"{{ var(txn.strip) -m int {count} }}"
        lines.append(f"{verb} set-var(txn.rest) path,regsub(^{leading},) if {this}")
    return [
        *lines,
        f"{verb} set-var(txn.new) var(txn.new),concat(,txn.rest) if {wanted}",
        f"{verb} set-var(txn.new) str(/) if {wanted} !{{ var(txn.new) -m beg / }}",
        f"{verb} set-path %[var(txn.new)] if {wanted}",
    ]
