"""How `mirror` reaches registries and reads its configuration."""

from __future__ import annotations

import functools
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.files import read, refuse
from hcp.mirror.config import ImageSet, parse
from hcp.mirror.graphs import Graphs
from hcp.mirror.sources import Sources
from hcp.mirror.workspace import Workspace
from hcp.mirror.yaml_text import load, load_all
from hcp.oci import Mirror, Reference, RegistryClient, Trust, host_certificates, logins
from hcp.oci.mirrors import from_objects
from hcp.oci.push import Pusher
from hcp.oci.realm import split
from hcp.publish.target import RELEASE, Target


def image_set(call: Call, *, delete: bool = False) -> tuple[ImageSet, Any]:
    """What the configuration asks for, and the document itself."""
    import yaml

    if not call.text("config"):
        raise UsageError("no image set configuration is given", hint="name its file with --config")
    data = read("config", call.text("config"))
    try:
        document = load(data)
    except yaml.YAMLError as error:
        raise refuse("config", call.text("config"), str(error).replace("\n", " "), "YAML") from None
    return parse(document, delete=delete), document


def checked(call: Call) -> None:
    for name, most in (("parallel-images", 64), ("parallel-layers", 64), ("retry-times", 100)):
        least = 0 if name == "retry-times" else 1
        if not least <= call.number(name) <= most:
            raise UsageError(f"--{name} {call.number(name)} is not possible", hint=f"it is between {least} and {most}")
    authorities(call)


def authorities(call: Call) -> str:
    if not call.text("ca"):
        return ""
    data = read("ca", call.text("ca"))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=data.decode())
    except (ssl.SSLError, ValueError) as error:
        raise refuse("ca", call.text("ca"), str(error), "one or more PEM certificates") from None
    return data.decode()


def sources(call: Call, mirrors: list[Mirror] | None = None) -> Sources:
    def client_for(ref: Reference) -> RegistryClient:
        return client(call, ref, call.switch("src-tls-verify"), mirrors)

    return Sources(client_for, retries=call.number("retry-times"), pause=call.seconds("retry-delay"))


def reader(call: Call, target: Target) -> RegistryClient:
    """Reads the target itself."""
    return client(call, Reference(target.registry, target.repository(RELEASE)), call.switch("dest-tls-verify"))


def client(call: Call, ref: Reference, verified: bool, mirrors: list[Mirror] | None = None) -> RegistryClient:
    plain = not verified and speaks_no_tls(ref.host)
    return RegistryClient(
        logins.find(ref, call.text("authfile")).auths,
        trust=trust(call, ref.registry, verified=verified),
        plain_http=[ref.registry] if plain else [],
        mirrors=mirrors or (),
        trust_env=True,
    )


def known_mirrors(workspace: Workspace) -> list[Mirror]:
    """Where earlier runs of a workspace brought things."""
    files = [workspace.resources / f"{name}-oc-mirror.yaml" for name in ("idms", "itms")]
    return from_objects(one for file in files if file.is_file() for one in load_all(file.read_bytes()) if one)


def graphs(call: Call, found: Sources) -> Graphs:
    place = call.text("update-url") or os.environ.get("UPDATE_URL_OVERRIDE") or ""
    return Graphs(found, place, trust(call))


def pusher(call: Call, target: Target, told: Callable[[int], None]) -> Pusher:
    verified = call.switch("dest-tls-verify")
    plain = not verified and speaks_no_tls(target.registry)
    login = logins.find(Reference(target.registry, target.repository(RELEASE)), call.text("authfile"))
    return Pusher(
        f"{'http' if plain else 'https'}://{target.registry}",
        auths=login.auths,
        uploads=call.number("parallel-images") * call.number("parallel-layers"),
        trust=trust(call, target.registry, verified=verified),
        trust_env=True,
        told=told,
    )


def trust(call: Call, registry: str = "", *, verified: bool = True) -> Trust:
    """For a registry, or for what is fetched like any file."""
    own = host_certificates.find(registry) if registry else {}
    return _trust(authorities(call), tuple(own.items()), () if verified else (registry,))


@functools.lru_cache(maxsize=64)
def _trust(bundle: str, own: tuple[tuple[str, str], ...], unverified: tuple[str, ...]) -> Trust:
    """Shared, since reading the system's CAs takes longer than asking a registry."""
    return Trust(bundle, dict(own), unverified=unverified)


def speaks_no_tls(registry: str) -> bool:
    """Asked only where the person said that no certificate is needed."""
    host, port = split(registry)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port or 443), timeout=10) as line, context.wrap_socket(line):
            return False
    except ssl.SSLError:
        return True
    except OSError:
        return port is None  # nothing on 443; what else is wrong is told by the first request


def cache(call: Call) -> Path:
    given = call.text("cache-dir")
    return (Path(given) if given else Path(os.environ.get("HOME") or "/")) / ".oc-mirror" / ".cache"
