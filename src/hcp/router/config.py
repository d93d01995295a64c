"""HAProxy's configuration: written once per process, since everything that changes is in maps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hcp.router import maps

# How many pods of a host are tried before a connection is given up.
ATTEMPTS = 3
# The backend of pods that are spoken to with TLS; each server of it stands for one authority.
TRUSTED = "pods-trusted"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where HAProxy listens and keeps its files."""

    directory: Path
    http_port: int = 8080
    https_port: int = 8443
    address: str = "*"
    max_connections: int = 20000
    # Whether it ends TLS itself, with certificates of its own.
    ends_tls: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        return maps.ORDER if self.ends_tls else maps.PLAIN

    @property
    def certificates(self) -> Path:
        """The list of certificates; what it begins with is shown for names that no other fits."""
        return self.directory / "certificates.list"

    def certificate_file(self, name: str) -> Path:
        return self.directory / f"{name}.pem"

    @property
    def socket(self) -> Path:
        return self.directory / "haproxy.sock"

    def map_file(self, name: str) -> Path:
        return self.directory / f"{name}.map"


def _choose(verb: str, scope: str, address: Path, number: str = "rand") -> list[str]:
    """Turn the name in `<scope>.key` into one of its addresses, by a number modulo their count, and connect there."""
    have = f"if {{ var({scope}.n) -m found }}"
    chosen = f"if {{ var({scope}.to) -m found }}"
    key = f"var({scope}.key)"
    return [
        f"{verb} set-var({scope}.i) {number},mod({scope}.n) {have}",
        f"{verb} set-var({scope}.to) {key},concat(\\#,{scope}.i),map_str({address}) {have}",
        # The table of addresses is changed before the table of counts: number 0 is always there.
        f"{verb} set-var({scope}.to) {key},concat(\\#0),map_str({address}) {have} !{{ var({scope}.to) -m found }}",
        f"{verb} set-dst var({scope}.to),field(1,@) {chosen}",
        f"{verb} set-dst-port var({scope}.to),field(2,@) {chosen}",
    ]


def _tls(settings: Settings) -> list[str]:
    return [line for attempt in range(ATTEMPTS) for line in _tls_attempt(settings, attempt)]


def _tls_attempt(settings: Settings, attempt: int) -> list[str]:
    """The way of a TLS connection to a pod.

    Kubernetes takes its time to notice that a node is gone. When a pod cannot be connected to, the connection goes to
    the next attempt over a socket of our own, with the client's address in front of it: the client's port picks the
    pod, and every attempt picks the one after it.
    """
    count, address = settings.map_file(maps.TLS_COUNT), settings.map_file(maps.TLS_ADDRESS)
    hello = "if { req.ssl_hello_type 1 }"
    missing = f"{hello} !{{ var(sess.n) -m found }}"
    if _ends(settings, attempt):
        missing += " !{ var(sess.end) -m found }"
    verb = "tcp-request content"
    again = settings.directory / f"again-{attempt}.sock"
    listen = f"unix@{again} accept-proxy" if attempt else f"{settings.address}:{settings.https_port}"
    # Half of the port, because kernels give clients even ones.
    number = f"src_port,div(2),add({attempt})"
    lines = [
        f"frontend tls-{attempt}",
        "  mode tcp",
        f"  bind {listen}",
        "  tcp-request inspect-delay 5s",
        f"  {verb} set-var(sess.key) req.ssl_sni,lower {hello}",
        f"  {verb} set-var(sess.n) var(sess.key),map_str_int({count}) {hello}",
        *_ended_here(settings, attempt, verb, hello),
        # No such host: perhaps somebody claims every name beside it.
        f"  {verb} set-var(sess.key) var(sess.key),regsub(^[^.]*,*) {missing}",
        f"  {verb} set-var(sess.n) var(sess.key),map_str_int({count}) {missing}",
        *(f"  {line}" for line in _choose(verb, "sess", address, number)),
        f"  {verb} accept if {{ var(sess.to) -m found }}",
        f"  {verb} {'accept' if _ends(settings, attempt) else 'reject'} {hello}",
        f"  {verb} reject if WAIT_END",
        *(["  use_backend end-tls if !{ var(sess.to) -m found }"] if _ends(settings, attempt) else []),
        f"  default_backend pods-tls-{attempt}",
        f"backend pods-tls-{attempt}",
        "  mode tcp",
        "  balance first",
        "  option srvtcpka",
        "  server pod 0.0.0.0",
    ]
    if attempt + 1 < ATTEMPTS:
        following = settings.directory / f"again-{attempt + 1}.sock"
        lines += ["  option redispatch 1", "  retries 1", f"  server again unix@{following} send-proxy-v2"]
    return lines


def _ends(settings: Settings, attempt: int) -> bool:
    return settings.ends_tls and attempt == 0


def _ended_here(settings: Settings, attempt: int, verb: str, hello: str) -> list[str]:
    if not _ends(settings, attempt):
        return []
    return [f"  {verb} set-var(sess.end) var(sess.key),map_str({settings.map_file(maps.TLS_END)}) {hello}"]


def _web(settings: Settings, web: maps.Web) -> list[str]:
    """From host and path to a pod: the exact path, then the longest that fits, then the same for `*.domain`."""
    exact, count, address = (settings.map_file(name) for name in (web.exact, web.count, web.address))
    missing = "if !{ var(txn.row) -m found }"
    verb = "http-request"
    lines = [
        f"{verb} set-var(txn.row) var(txn.page),map_str({exact})",
        f"{verb} set-var(txn.row) var(txn.base),map_beg({count}) {missing}",
        f"{verb} set-var(txn.page) var(txn.page),regsub(^[^./]*,*) {missing}",
        f"{verb} set-var(txn.row) var(txn.page),map_str({exact}) {missing}",
        f"{verb} set-var(txn.row) var(txn.wild),map_beg({count}) {missing}",
        f"{verb} set-var(txn.n) var(txn.row),field(1,@) if {{ var(txn.row) -m found }}",
        f"{verb} set-var(txn.key) var(txn.row),field(2,@) if {{ var(txn.row) -m found }}",
        f"{verb} set-var(txn.ca) var(txn.row),field(3,@) if {{ var(txn.row) -m found }}",
        *_choose(verb, "txn", address),
        f'{verb} return status 503 content-type text/plain string "No Route answers this host."'
        " if !{ var(txn.to) -m found }",
    ]
    return [f"  {line}" for line in lines]


def _names(verb: str) -> list[str]:
    """What a request asks for: its page, the same with a slash behind it, and that of every name beside the host."""
    return [
        f"  {verb} set-var(txn.path) path",
        f"  {verb} set-var(txn.page) req.hdr(host),lower,field(1,:),concat(,txn.path)",
        f"  {verb} set-var(txn.base) var(txn.page),concat(/)",
        f"  {verb} set-var(txn.wild) var(txn.base),regsub(^[^./]*,*)",
    ]


def _end(settings: Settings) -> list[str]:
    """Where the router ends TLS: connections come from its own front, with the client's address in front of them."""
    if not settings.ends_tls:
        return []
    front = settings.directory / "end.sock"
    verb = "http-request"
    return [
        "backend end-tls",
        "  mode tcp",
        f"  server front unix@{front} send-proxy-v2",
        "frontend https",
        "  mode http",
        # No HTTP/2: browsers would use one connection for all hosts of a wildcard certificate, passed on or not.
        f"  bind unix@{front} mode 600 accept-proxy ssl crt-list {settings.certificates} alpn http/1.1",
        "  option forwardfor",
        *_names(verb),
        *_web(settings, maps.HTTPS),
        f"  {verb} set-header X-Forwarded-Proto https",
        f"  {verb} set-header X-Forwarded-Port 443",
        *_to_pods(),
        f"backend {TRUSTED}",
        "  mode http",
        "  http-reuse never",
        "  use-server %[var(txn.ca)] if { var(txn.ca) -m found }",
    ]


def _to_pods() -> list[str]:
    plain = f"{{ var(txn.ca) -m str {maps.NO_TRUST} }}"
    return [f"  use_backend {TRUSTED} if {{ var(txn.ca) -m found }} !{plain}", "  default_backend pods-http"]


def _http(settings: Settings) -> list[str]:
    redirect = settings.map_file(maps.HTTP_REDIRECT)
    # Without the port of the request, which is that of plain HTTP.
    secure = "https://%[req.hdr(host),field(1,:)]%[pathq]"
    verb = "http-request"
    return [
        "frontend http",
        "  mode http",
        f"  bind {settings.address}:{settings.http_port}",
        "  option forwardfor",
        f"  {verb} return status 200 content-type text/plain string ok if {{ path /_router/healthz }}",
        *_names(verb),
        f"  {verb} redirect location {secure} code 302 if {{ var(txn.base),map_beg({redirect}) -m found }}",
        f"  {verb} redirect location {secure} code 302 if {{ var(txn.wild),map_beg({redirect}) -m found }}",
        *_web(settings, maps.HTTP),
        f"  {verb} set-header X-Forwarded-Proto http",
        *(_to_pods() if settings.ends_tls else ["  default_backend pods-http"]),
        "backend pods-http",
        "  mode http",
        "  http-reuse never",
        "  server pod 0.0.0.0",
    ]


def render(settings: Settings) -> str:
    lines = [
        "global",
        f"  maxconn {settings.max_connections}",
        f"  stats socket {settings.socket} mode 600 level admin",
        "  log stderr format raw local0 notice",
        "defaults",
        "  log global",
        "  option dontlognull",
        "  timeout connect 2s",
        "  timeout client 1m",
        "  timeout server 1m",
        "  timeout http-request 10s",
        # Watches and tunnels are quiet for long; dead peers are found by TCP keep-alive.
        "  timeout tunnel 24h",
        "  timeout client-fin 30s",
        "  timeout server-fin 30s",
        "  option clitcpka",
        *_tls(settings),
        *_http(settings),
        *_end(settings),
    ]
    return "\n".join(lines) + "\n"
