"""Which name servers the machine uses."""

from __future__ import annotations

from pathlib import Path

# systemd-resolved writes itself, on the loopback, into the first, and the servers it asks into the second.
_FILES = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))


def machine_nameservers() -> list[str]:
    """Resolvers that can also be reached from another network namespace: not the ones on the loopback."""
    for path in _FILES:
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        found = [line.split()[1] for line in lines if line.startswith("nameserver ") and len(line.split()) > 1]
        usable = [server for server in found if not server.startswith("127.") and ":" not in server]
        if usable:
            return usable[:3]
    return []
