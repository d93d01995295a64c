"""How the node's containerd finds mirrors and trusts registries: one ``hosts.toml`` per registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hcp.errors import HcpError
from hcp.ignition.document import Document, file

CERTS_DIR = "/etc/containerd/certs.d"


@dataclass(frozen=True)
class MirrorRule:
    """Images of ``source`` (``host[/path]``) are first looked for at each of ``mirrors``."""

    source: str
    mirrors: tuple[str, ...]


def mirror_host(source: str, mirror: str) -> tuple[str, bool]:
    """The address containerd asks, and whether that address carries a path of its own.

    containerd mirrors whole hosts: it asks ``<address>/<full repository path>``. A mirror that renames the path can
    only be expressed when its path ends with the source's path.
    """
    source_path = source.partition("/")[2]
    host, _, path = mirror.partition("/")
    if path == source_path or not path:
        return f"https://{host}", False
    if not source_path:
        return f"https://{host}/v2/{path}", True
    if path.endswith(f"/{source_path}"):
        return f"https://{host}/v2/{path.removesuffix(f'/{source_path}')}", True
    raise HcpError(
        f"the image mirror {mirror!r} for {source!r} cannot be used on nodes",
        cause="containerd mirrors keep the repository path of the source",
        hint=f"mirror {source!r} to a place whose path ends with {source_path!r}",
    )


def hosts_toml(registry: str, mirrors: Sequence[tuple[str, bool]], trusted: Mapping[str, str]) -> str:
    """The containerd host file of one registry; ``trusted`` gives the CA file of a host name, if it has one."""
    lines = [f'server = "https://{_upstream(registry)}"']
    if registry in trusted:
        lines.append(f'ca = "{trusted[registry]}"')
    for address, has_path in mirrors:
        lines += ["", f'[host."{address}"]', '  capabilities = ["pull", "resolve"]']
        host = address.removeprefix("https://").partition("/")[0]
        if host in trusted:
            lines.append(f'  ca = "{trusted[host]}"')
        if has_path:
            lines.append("  override_path = true")
    return "\n".join(lines) + "\n"


def registry_files(rules: Sequence[MirrorRule], authorities: Mapping[str, str]) -> list[Document]:
    """The files under certs.d for all rules and for every registry with a CA of its own (host → PEM text)."""
    by_registry: dict[str, list[tuple[str, bool]]] = {host: [] for host in authorities}
    for rule in rules:
        registry = rule.source.partition("/")[0]
        known = by_registry.setdefault(registry, [])
        for mirror in rule.mirrors:
            host = mirror_host(rule.source, mirror)
            if host not in known:
                known.append(host)
    trusted = {host: f"{CERTS_DIR}/{host}/ca.crt" for host in authorities}
    files = [file(trusted[host], authorities[host]) for host in sorted(authorities)]
    for registry in sorted(by_registry):
        files.append(file(f"{CERTS_DIR}/{registry}/hosts.toml", hosts_toml(registry, by_registry[registry], trusted)))
    return files


def _upstream(registry: str) -> str:
    return "registry-1.docker.io" if registry == "docker.io" else registry
