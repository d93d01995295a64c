"""Certificates that HAProxy shows, and authorities that it checks pods with: given and taken while it runs.

A certificate that was taken lies in a file too, so that a process that starts again begins with it. One that HAProxy
does not take stays away from the files: it cannot hinder a start.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from cryptography import x509

from hcp.router.config import CERTIFICATES, TRUSTED, Settings, certificate_name
from hcp.router.maps import trust_name

DEFAULT = "default"
# HAProxy reads a command into one buffer of 16 KiB.
LONGEST = 15000
_BLOCK = re.compile(r"-----BEGIN (?P<kind>[A-Z0-9 ]{1,40})-----\n(?P<body>[A-Za-z0-9+/=\n]+)\n-----END (?P=kind)-----")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A chain with its key, for one host or `*.domain`."""

    host: str
    pem: str

    @property
    def name(self) -> str:
        return f"crt-{hashlib.sha256(f'{self.host} {self.pem}'.encode()).hexdigest()[:24]}"

    @property
    def settings(self) -> str:
        """What the list says beside the file. HTTP/2 only with a certificate for this host and no other: clients use
        one such connection for all hosts of a certificate, also those whose TLS is passed on."""
        return f"[alpn h2,http/1.1] {self.host}" if _is_for(self.pem, self.host) else self.host


@functools.lru_cache(maxsize=4096)
def _is_for(pem: str, host: str) -> bool:
    try:
        first = x509.load_pem_x509_certificate(blocks(pem).encode())
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return {name.lower() for name in names.get_values_for_type(x509.DNSName)} == {host}
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return False


class Keys:
    """What one HAProxy was told."""

    def __init__(self, settings: Settings, command: Callable[[str], Awaitable[str]]) -> None:
        self._settings = settings
        self._command = command
        self._default = ""
        self._shown: dict[str, Certificate] = {}
        # Who brings which certificate, and by its name who wants it.
        self._of: dict[str, Certificate] = {}
        self._wanted: dict[str, set[str]] = {}
        self._given_up: set[str] = set()
        self._trusted: dict[str, str] = {}

    @property
    def ready(self) -> bool:
        """Whether there is a certificate to show at all."""
        return bool(self._default)

    async def set_default(self, pem: str) -> None:
        """Shown for names that no other certificate fits; before the start, or while it runs."""
        if pem == self._default:
            return
        running = bool(self._default)
        self._default = pem
        if running:
            await self._replace(certificate_name(DEFAULT), pem)
            self._file(DEFAULT, pem)

    def write(self) -> None:
        """What a start reads beside the certificates of Routes, which are in files from the moment they are shown."""
        if not self._settings.ends_tls:
            return
        self._settings.directory.mkdir(parents=True, exist_ok=True)
        self._file(DEFAULT, self._default)
        lines = [certificate_name(DEFAULT)]
        lines += [f"{certificate_name(name)} {one.settings}" for name, one in sorted(self._shown.items())]
        text = "".join(f"{line}\n" for line in lines)
        (self._settings.directory / CERTIFICATES).write_text(text, encoding="utf-8")

    async def push(
        self, owners: Iterable[str], certificates: Mapping[str, Certificate], authorities: Mapping[str, str]
    ) -> dict[str, str]:
        """Give what is new of these Routes, take what nobody wants any more. The answer: why HAProxy refuses one."""
        owners, refused = list(owners), {}
        for owner in owners:
            wanted, authority = certificates.get(owner), authorities.get(owner)
            words = await self._trust(trust_name(authority), authority) if authority else ""
            if wanted is not None and not words and wanted.name not in self._shown:
                words = await self._show(wanted)
            if words:
                refused[owner] = words
        for owner in owners:
            self._hold(owner, None if owner in refused else certificates.get(owner))
        # Only now: what one Route gives up another may have taken. Should it fail, the next time does it.
        for name in [name for name in self._given_up if name in self._shown and name not in self._wanted]:
            await self._hide(name)
        self._given_up.clear()
        return refused

    def _hold(self, owner: str, wanted: Certificate | None) -> None:
        """Write down who wants what, and what nobody may want any more."""
        before = self._of.pop(owner, None)
        if wanted is not None:
            self._of[owner] = wanted
            self._wanted.setdefault(wanted.name, set()).add(owner)
        if before is None or before == wanted:
            return
        self._wanted[before.name].discard(owner)
        if not self._wanted[before.name]:
            del self._wanted[before.name]
            self._given_up.add(before.name)

    async def trust_again(self) -> None:
        """A process that was started anew knows no authority."""
        known, self._trusted = dict(self._trusted), {}
        for name, authority in known.items():
            await self._trust(name, authority)

    async def _show(self, one: Certificate) -> str:
        pem = blocks(one.pem)
        if not pem or len(pem) > LONGEST:
            return _unfit(pem, "certificate")
        path = certificate_name(one.name)
        await self._command(f"new ssl cert {path}")
        words = await self._replace(path, pem)
        if not words:
            self._file(one.name, pem)
            line = f"add ssl crt-list {CERTIFICATES} <<\n{path} {one.settings}\n"
            words = await self._ask(line, "Success!")
        if words:
            await self._command(f"abort ssl cert {path}")
            await self._command(f"del ssl cert {path}")
            (self._settings.directory / path).unlink(missing_ok=True)
            return words
        self._shown[one.name] = one
        return ""

    async def _replace(self, path: str, pem: str) -> str:
        words = await self._ask(f"set ssl cert {path} <<\n{blocks(pem)}\n", "ransaction")
        return words or await self._ask(f"commit ssl cert {path}", "Success!")

    async def _ask(self, line: str, good: str) -> str:
        """What is wrong, in HAProxy's words; it says in words that something went well, too."""
        answer = await self._command(line)
        if good in answer:
            return ""
        return " ".join(answer.split())[:300] or "it gave no reason"

    async def _hide(self, name: str) -> None:
        path = certificate_name(name)
        await self._command(f"del ssl crt-list {CERTIFICATES} {path}")
        await self._command(f"del ssl cert {path}")
        (self._settings.directory / path).unlink(missing_ok=True)
        self._shown.pop(name, None)

    async def _trust(self, name: str, authority: str) -> str:
        if name in self._trusted:
            return ""
        pem = blocks(authority)
        if not pem or len(pem) > LONGEST:
            return _unfit(pem, "authority")
        path = f"{name}.ca"
        await self._command(f"new ssl ca-file {path}")
        words = await self._ask(f"set ssl ca-file {path} <<\n{pem}\n", "ransaction")
        words = words or await self._ask(f"commit ssl ca-file {path}", "Success!")
        if not words:
            line = f"add server {TRUSTED}/{name} 0.0.0.0:0 ssl verify required ca-file {path}"
            words = await self._ask(line, "registered")
        if not words:
            await self._command(f"set server {TRUSTED}/{name} state ready")
        if words:
            await self._command(f"abort ssl ca-file {path}")
            await self._command(f"del ssl ca-file {path}")
            return words
        self._trusted[name] = authority
        return ""

    def _file(self, name: str, pem: str) -> None:
        path = self._settings.directory / certificate_name(name)
        path.touch(mode=0o600, exist_ok=True)
        path.write_text(f"{blocks(pem)}\n", encoding="utf-8")


def blocks(text: str) -> str:
    """The PEM blocks of a text, each line of them nothing but PEM: an empty line would end what HAProxy is given."""
    found = []
    for match in _BLOCK.finditer(text.replace("\r\n", "\n")):
        body = "\n".join(line for line in match["body"].split("\n") if line)
        found.append(f"-----BEGIN {match['kind']}-----\n{body}\n-----END {match['kind']}-----")
    return "\n".join(found)


def _unfit(pem: str, what: str) -> str:
    return f"its {what} has more than {LONGEST} characters" if pem else f"its {what} is not in PEM form"
