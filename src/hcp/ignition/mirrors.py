"""How the node's containerd finds mirrors and trusts registries: one ``hosts.toml`` per registry.

Where a registry has rules for mirrors, containerd asks the node's own server first (`mirror_proxy`). Mirrors that keep
the path of the source are named behind it: a disk that has no such server still finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hcp.ignition.document import Document, file

CERTS_DIR = "/etc/containerd/certs.d"
MIRROR_PROXY = "127.0.0.1:2953"
_ANY = "_default"


@dataclass(frozen=True)
class MirrorRule:
    """Images of ``source`` (``host[/path]`` or ``*.domain``) are first looked for at each of ``mirrors``."""

    source: str
    mirrors: tuple[str, ...]


def authority_file(registry: str, folder: str = CERTS_DIR) -> str:
    """Where the CA of one registry lies."""
    return f"{folder}/{registry}/ca.crt"


def mirror_host(source: str, mirror: str) -> tuple[str, bool] | None:
    """The address that containerd itself can ask, and whether it carries a path of its own; None where it cannot.

    containerd mirrors whole hosts: it asks ``<address>/<full repository path>``. A mirror with another path can only be
    expressed when its path ends with the source's path.
    """
    source_path = source.partition("/")[2]
    host, _, path = mirror.partition("/")
    if path == source_path or not path:
        return f"https://{host}", False
    if not source_path:
        return f"https://{host}/v2/{path}", True
    if path.endswith(f"/{source_path}"):
        return f"https://{host}/v2/{path.removesuffix(f'/{source_path}')}", True
    return None


def hosts_toml(registry: str, mirrors: Sequence[tuple[str, bool]], trusted: Mapping[str, str], *, proxied: bool) -> str:
    """The containerd host file of one registry; ``trusted`` gives the CA file of a host name, if it has one."""
    lines = [] if registry == _ANY else [f'server = "https://{_upstream(registry)}"']
    if registry in trusted:
        lines.append(f'ca = "{trusted[registry]}"')
    for address, has_path in [*([(f"http://{MIRROR_PROXY}", False)] if proxied else []), *mirrors]:
        lines += ["", f'[host."{address}"]', '  capabilities = ["pull", "resolve"]']
        host = address.removeprefix("https://").partition("/")[0]
        if host in trusted:
            lines.append(f'  ca = "{trusted[host]}"')
        if has_path:
            lines.append("  override_path = true")
    return "\n".join(lines).lstrip("\n") + "\n"


def registry_files(rules: Sequence[MirrorRule], authorities: Mapping[str, str]) -> list[Document]:
    """The files under certs.d for all rules and for every registry with a CA of its own (host → PEM text)."""
    return [file(path, text) for path, text in registry_texts(rules, authorities).items()]


def registry_texts(
    rules: Sequence[MirrorRule], authorities: Mapping[str, str], folder: str = CERTS_DIR
) -> dict[str, str]:
    """The same by path, for a containerd that looks for them in this folder."""
    by_registry: dict[str, list[tuple[str, bool]]] = {host: [] for host in authorities}
    proxied: set[str] = set()
    for rule in rules:
        registry = _ANY if rule.source.startswith("*.") else rule.source.partition("/")[0]
        known = by_registry.setdefault(registry, [])
        proxied.add(registry)
        for mirror in rule.mirrors if registry != _ANY else ():
            host = mirror_host(rule.source, mirror)
            if host is not None and host not in known:
                known.append(host)
    if _ANY in proxied:  # a registry with a file of its own does not get what is for any
        proxied |= set(by_registry)
    trusted = {host: authority_file(host, folder) for host in authorities}
    texts = {trusted[host]: authorities[host] for host in sorted(authorities)}
    for registry in sorted(by_registry):
        text = hosts_toml(registry, by_registry[registry], trusted, proxied=registry in proxied)
        texts[f"{folder}/{registry}/hosts.toml"] = text
    return texts


def _upstream(registry: str) -> str:
    return "registry-1.docker.io" if registry == "docker.io" else registry
