"""HAProxy's configuration: written once per process, since everything that changes is in maps.

HAProxy works in the folder of its files, and every file is called by its name alone, here and in commands: the path of
the folder may have spaces, which no argument of a converter can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hcp.router import maps, option_rules, options, scripted, unanswered, waiting

# How many pods of a host are tried before a connection is given up.
ATTEMPTS = 3
# The host of a connection travels in front of it, in the one field of the PROXY protocol that takes any text.
NAMED, NAMING, PASSED_ON = (
    "fc_pp_unique_id",
    "send-proxy-v2 proxy-v2-options unique-id",
    "unique-id-format %[var(sess.key)]",
)
# The backend of pods that are spoken to with TLS; each server of it stands for one authority.
TRUSTED = maps.TRUSTED
# Where plain requests are sent: without the port, which is that of plain HTTP.
SECURE = "https://%[req.hdr(host),field(1,:)]%[pathq]"
# Where a request stays that no pod answers.
NOBODY = "nobody"
# Names of files. The first certificate of the list is shown for names that no other fits.
CONFIG, SOCKET, SCRIPT, CERTIFICATES = "haproxy.cfg", "haproxy.sock", "waiting.lua", "certificates.list"
# Where connections to clusters that sleep are announced to this process.
WAKE_SOCKET = "wake.sock"
# Where HAProxy speaks with itself.
END_SOCKET, HELD_SOCKET = "end.sock", "held.sock"


def map_name(table: str) -> str:
    return f"{table}.map"


def certificate_name(name: str) -> str:
    return f"{name}.pem"


def _again(attempt: int) -> str:
    return f"unix@again-{attempt}.sock"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where HAProxy listens and keeps its files."""

    directory: Path
    http_port: int = 8080
    https_port: int = 8443
    # Where nodes of hosted clusters name the host they want beside a connection whose TLS names another; 0: nowhere.
    named_port: int = 0
    address: str = "*"
    # Whether it listens on IPv6 too.
    six: bool = False
    max_connections: int = 20000
    # Whether it ends TLS itself, with certificates of its own.
    ends_tls: bool = False
    # Whether connections to hosted APIs that sleep are held until they are awake.
    wakes: bool = False

    def binds(self, port: int, options: str = "") -> list[str]:
        """A socket for each family: one for both would show IPv4 clients by addresses of IPv6."""
        return [
            f"  bind {self.address}:{port}{options}",
            *([f"  bind [::]:{port} v6only{options}"] if self.six else []),
        ]

    @property
    def tables(self) -> tuple[str, ...]:
        left_out = {*(() if self.ends_tls else maps.ENDING), *(() if self.wakes else (maps.TLS_ASLEEP,))}
        return tuple(name for name in maps.ORDER if name not in left_out)

    @property
    def wake_socket(self) -> Path:
        return self.directory / WAKE_SOCKET

    @property
    def socket(self) -> Path:
        return self.directory / SOCKET


def _choose(verb: str, scope: str, address: str, number: str) -> list[str]:
    """Turn the name in `<scope>.key` into one of its addresses, by a number modulo their count, and connect there."""
    key, none = f"var({scope}.key)", f"if !{{ var({scope}.to) -m found }}"
    return [
        f"{verb} set-var({scope}.i) {number},mod({scope}.n)",
        f"{verb} set-var({scope}.to) {key},concat(\\#,{scope}.i),map_str({address})",
        # The table of addresses is changed before the table of counts: number 0 is always there.
        f"{verb} set-var({scope}.to) {key},concat(\\#0),map_str({address}) {none}",
        f"{verb} set-dst var({scope}.to),field(1,@)",
        f"{verb} set-dst-port var({scope}.to),field(2,@)",
    ]


def _tls(settings: Settings) -> list[str]:
    return [line for attempt in range(ATTEMPTS) for line in _tls_attempt(settings, attempt)] + [
        *_named(settings),
        *_held(settings),
    ]


def _tls_attempt(settings: Settings, attempt: int) -> list[str]:
    """The way of a TLS connection to a pod.

    Kubernetes takes its time to notice that a node is gone. When a pod cannot be connected to, the connection goes to
    the next attempt over a socket of our own, with the client's address and the host in front of it: the client's port
    picks the pod, and every attempt picks the one after it.
    """
    count, address = map_name(maps.TLS_COUNT), map_name(maps.TLS_ADDRESS)
    hello = "if { req.ssl_hello_type 1 }"
    missing = f"{hello} !{{ var(sess.n) -m found }}"
    if _ends(settings, attempt):
        missing += " !{ var(sess.end) -m found }"
    wakes = settings.wakes and attempt == 0
    asleep = "{ var(sess.asleep) -m found }"
    verb = "tcp-request content"
    # Asked only of hosts that nobody answers.
    look = f"{verb} set-var(sess.asleep) var(sess.key),map_str({map_name(maps.TLS_ASLEEP)}) {missing}"
    if wakes:
        missing += f" !{asleep}"
    listen = [f"  bind {_again(attempt)} accept-proxy"] if attempt else settings.binds(settings.https_port)
    host = NAMED if attempt else "req.ssl_sni"
    options, allowed = map_name(maps.TLS_OPTIONS), map_name(maps.ALLOWED)
    guards = option_rules.of_connections(options, allowed, hello, counting=not attempt)
    lines = [
        f"frontend tls-{attempt}",
        "  mode tcp",
        *listen,
        f"  {PASSED_ON}",
        "  tcp-request inspect-delay 5s",
        f"  {verb} set-var(sess.key) {host},lower {hello}",
        f"  {verb} set-var(sess.n) var(sess.key),map_str_int({count}) {hello}",
        *_ended_here(settings, attempt, verb, hello),
        *([f"  {look}"] if wakes else []),
        # No such host: perhaps somebody claims every name beside it.
        *([f"  {verb} set-var(sess.host) var(sess.key) {missing}"] if _ends(settings, attempt) else []),
        f"  {verb} set-var(sess.key) var(sess.key),regsub(^[^.]*,*) {missing}",
        f"  {verb} set-var(sess.n) var(sess.key),map_str_int({count}) {missing}",
        *_waited_for(settings, attempt, verb, missing),
        *(f"  {line}" for line in [*guards, *option_rules.start(attempt)]),
        *(f"  {line}" for line in _choose(verb, "sess", address, "var(sess.start)")),
        f"  {verb} accept if {{ var(sess.to) -m found }}",
        *([f"  {verb} accept if {asleep}"] if wakes else []),
        f"  {verb} {'accept' if _ends(settings, attempt) else 'reject'} {hello}",
        f"  {verb} reject if WAIT_END",
        *([f"  use_backend {waiting.BACKEND} if {asleep}"] if wakes else []),
        *(["  use_backend end-tls if !{ var(sess.to) -m found }"] if _ends(settings, attempt) else []),
        f"  default_backend pods-tls-{attempt}",
        f"backend pods-tls-{attempt}",
        "  mode tcp",
        "  balance first",
        "  option srvtcpka",
        "  server pod 0.0.0.0",
    ]
    if attempt + 1 < ATTEMPTS:
        # A pod of a node that is gone says nothing; the next one is asked before a person notices.
        lines += [
            "  timeout connect 400ms",
            "  option redispatch 1",
            "  retries 1",
            f"  server again {_again(attempt + 1)} {NAMING}",
        ]
    return lines


def _waited_for(settings: Settings, attempt: int, verb: str, missing: str) -> list[str]:
    """Where Gateways are served too."""
    if not _ends(settings, attempt):
        return []
    count, end, waiting_for = (map_name(one) for one in (maps.TLS_COUNT, maps.TLS_END, maps.LISTENERS))
    return [f"  {line}" for line in unanswered.of_connections(verb, count, end, waiting_for, missing)]


def _named(settings: Settings) -> list[str]:
    """The way of connections whose TLS names the API inside of a hosted cluster, which all of them call the same."""
    if not settings.named_port:
        return []
    count, address = map_name(maps.TLS_COUNT), map_name(maps.TLS_ADDRESS)
    verb = "tcp-request content"
    return [
        "frontend named",
        "  mode tcp",
        *settings.binds(settings.named_port, " accept-proxy"),
        f"  {PASSED_ON}",
        f"  {verb} set-var(sess.key) {NAMED},lower",
        f"  {verb} set-var(sess.n) var(sess.key),map_str_int({count})",
        *(f"  {line}" for line in _choose(verb, "sess", address, "src_port,div(2)")),
        f"  {verb} reject if !{{ var(sess.to) -m found }}",
        "  default_backend pods-tls-0",
    ]


def _held(settings: Settings) -> list[str]:
    """The way of connections to clusters that sleep: they wait here, and then look for their pods once more.

    They are let out of the usual way, whose rules may take seconds at most. Only these pay for the script.
    """
    if not settings.wakes:
        return []
    count, address = map_name(maps.TLS_COUNT), map_name(maps.TLS_ADDRESS)
    verb = "tcp-request content"
    return [
        f"backend {waiting.BACKEND}",
        "  mode tcp",
        f"  server held unix@{HELD_SOCKET} {NAMING}",
        "frontend held",
        "  mode tcp",
        f"  bind unix@{HELD_SOCKET} mode 600 accept-proxy",
        f"  {PASSED_ON}",
        f"  timeout client {waiting.GIVE_UP}s",
        f"  tcp-request inspect-delay {waiting.GIVE_UP}s",
        f"  {verb} set-var(sess.key) {NAMED},lower",
        f"  {verb} lua.{waiting.ACTION}",
        f"  {verb} set-var(sess.n) var(sess.key),map_str_int({count})",
        *(f"  {line}" for line in _choose(verb, "sess", address, "src_port,div(2)")),
        f"  {verb} reject if !{{ var(sess.to) -m found }}",
        "  default_backend pods-tls-0",
    ]


def _ends(settings: Settings, attempt: int) -> bool:
    return settings.ends_tls and attempt == 0


def _ended_here(settings: Settings, attempt: int, verb: str, hello: str) -> list[str]:
    if not _ends(settings, attempt):
        return []
    return [f"  {verb} set-var(sess.end) var(sess.key),map_str({map_name(maps.TLS_END)}) {hello}"]


def _web(table: str, *more: str, gateways: bool) -> list[str]:
    """From host and path to a pod: the longest place that fits, then the same for `*.domain`, then for any name.

    Every request pays for every line, so there are few. Where nothing is found, what follows finds nothing either, and
    the request stays with those that nobody answers.
    """
    count, address = map_name(table), map_name(maps.ADDRESS)
    missing = "if !{ var(txn.row) -m found }"
    verb = "http-request"
    deeper = unanswered.deeper("./") if gateways else []
    end = f",{maps.END}"
    lines = [
        f"{verb} set-var(txn.path) path",
        f"{verb} set-var(txn.page) req.hdr(host),lower,field(1,:),concat(,txn.path{end})",
        f"{verb} set-var(txn.row) var(txn.page),map_beg({count})",
        f"{verb} set-var(txn.row) var(txn.page),regsub(^[^./]*,*),map_beg({count}) {missing}",
        *(f"{verb} set-var(txn.row) var(txn.page),{one},map_beg({count}) {missing}" for one in deeper),
        f"{verb} set-var(txn.row) str(*),concat(,txn.path{end}),map_beg({count}) {missing}",
        *([f"{verb} lua.{scripted.CHOOSE} if {{ var(txn.row) -m beg {scripted.CHOOSING} }}"] if gateways else []),
        f"{verb} set-var(txn.n) var(txn.row),field(1,@)",
        f"{verb} set-var(txn.key) var(txn.row),field(2,@)",
        *_choose(verb, "txn", address, "rand"),
        *(f"{verb} {line}" for line in more),
        "use_backend %[var(txn.row),field(3,@)] if { var(txn.to) -m found }",
        f"default_backend {NOBODY}",
    ]
    return [f"  {line}" for line in lines]


def _nobody(settings: Settings) -> list[str]:
    """Where requests stay that no pod answers."""
    return [
        f"backend {NOBODY}",
        "  mode http",
        f"  http-request redirect location {SECURE} code 302 if {{ var(txn.row) -m str {maps.REDIRECT} }}",
        *(f"  {line}" for line in (unanswered.of_requests(map_name(maps.LISTENERS)) if settings.ends_tls else [])),
        '  http-request return status 503 content-type text/plain string "No Route answers this host."',
    ]


def _end(settings: Settings) -> list[str]:
    """Where the router ends TLS: connections come from its own front, with the client's address in front of them."""
    if not settings.ends_tls:
        return []
    return [
        "backend end-tls",
        "  mode tcp",
        f"  server front unix@{END_SOCKET} send-proxy-v2",
        "frontend https",
        "  mode http",
        # No HTTP/2: browsers would use one connection for all hosts of a wildcard certificate, passed on or not.
        f"  bind unix@{END_SOCKET} mode 600 accept-proxy ssl crt-list {CERTIFICATES} alpn http/1.1",
        *_web(
            maps.HTTPS,
            f"set-header X-Forwarded-Port 443 unless {{ var(txn.row) -m end @{options.FORWARDED} }}",
            gateways=True,
        ),
        *_backend(TRUSTED, "use-server %[var(txn.row),field(4,@)] if TRUE"),
    ]


def _backend(name: str, server: str, *, gateways: bool = False) -> list[str]:
    """Where annotations are followed. Connections to pods are kept: they are told apart by the address.

    `gateways`: whether requests come here of which a route of a Gateway changes headers.
    """
    files = (map_name(table) for table in (maps.OPTIONS, maps.ALLOWED, maps.ADDRESS))
    rules = option_rules.of_requests(*files, usual=name == maps.WITH_OPTIONS)
    if gateways:
        changed = f"if {{ var(txn.key),map_str({map_name(maps.CHANGES)}) -m found }}"
        script = (f"http-request lua.{scripted.REQUEST} {changed}", f"http-response lua.{scripted.RESPONSE} {changed}")
        rules = [*script, *rules]
    return [f"backend {name}", "  mode http", *(f"  {line}" for line in rules), f"  {server}"]


def _http(settings: Settings) -> list[str]:
    verb = "http-request"
    return [
        "frontend http",
        "  mode http",
        *settings.binds(settings.http_port),
        "  monitor-uri /_router/healthz",
        *_web(maps.HTTP, gateways=settings.ends_tls),
        *_nobody(settings),
        f"backend {maps.PODS}",
        "  mode http",
        "  option forwardfor",
        f"  {verb} set-header X-Forwarded-Proto %[fe_name]",
        "  server pod 0.0.0.0",
        *_backend(maps.WITH_OPTIONS, "server pod 0.0.0.0"),
        *_backend(maps.REWRITING, "server pod 0.0.0.0", gateways=settings.ends_tls),
        *_backend(maps.PLAIN_HTTP2, "server pod 0.0.0.0 proto h2", gateways=settings.ends_tls),
        *option_rules.counters(),
    ]


def render(settings: Settings) -> str:
    lines = [
        "global",
        f"  maxconn {settings.max_connections}",
        f"  stats socket unix@{SOCKET} mode 600 level admin",
        "  log stderr format raw local0 notice",
        *([f"  lua-load {SCRIPT}"] if settings.wakes else []),
        *([f"  lua-load {scripted.SCRIPT}"] if settings.ends_tls else []),
        # No log of its own for traffic: a line would be made of every request, only to be left out by its level.
        "defaults",
        "  timeout connect 2s",
        "  timeout client 1m",
        f"  timeout server {options.TIMEOUT}ms",
        "  timeout http-request 10s",
        # Watches and tunnels are quiet for long; dead peers are found by TCP keep-alive.
        f"  timeout tunnel {options.TUNNEL}ms",
        "  timeout client-fin 30s",
        "  timeout server-fin 30s",
        "  option clitcpka",
        *_tls(settings),
        *_http(settings),
        *_end(settings),
    ]
    return "\n".join(lines) + "\n"
