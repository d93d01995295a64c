"""The logins that docker and podman keep on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.oci.auth import Auths
from hcp.oci.reference import Reference


@dataclass(frozen=True)
class Logins:
    """What one file says, and which file it was; without a file nobody is logged in anywhere."""

    auths: Auths
    path: Path | None = None


def places(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Where podman and docker look, in podman's order."""
    home = Path(environment.get("HOME") or "/")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    found = []
    if environment.get("XDG_RUNTIME_DIR"):
        found.append(Path(environment["XDG_RUNTIME_DIR"]) / "containers" / "auth.json")
    found.append(config / "containers" / "auth.json")
    found.append(Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json")
    return found


def find(ref: Reference, given: str = "", environment: Mapping[str, str] = os.environ) -> Logins:
    """The logins to use for a registry: of the file that is named, else of the first one that knows this registry."""
    named = given or environment.get("REGISTRY_AUTH_FILE") or ""
    if named:
        config = _read(Path(named))
        auths = _auths(Path(named), config)
        if auths.find(ref) is None:
            _refuse_helper(ref, Path(named), config)
        return Logins(auths, Path(named))
    for path in places(environment):
        if not path.is_file():
            continue
        config = _read(path)
        auths = _auths(path, config)
        if auths.find(ref) is not None:
            return Logins(auths, path)
        _refuse_helper(ref, path, config)
    return Logins(Auths(None))


def _auths(path: Path, config: Mapping[str, Any]) -> Auths:
    try:
        return Auths(config)
    except HcpError as error:
        raise HcpError(f"the logins in {path} cannot be used", cause=str(error)) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise HcpError(f"the file with logins {path} cannot be read", cause=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise HcpError(
            f"the file with logins {path} is not JSON", hint="podman login --authfile FILE REGISTRY writes one"
        ) from error
    if not isinstance(found, dict):
        raise HcpError(
            f"the file with logins {path} has no logins", hint="podman login --authfile FILE REGISTRY writes one"
        )
    return found


def _refuse_helper(ref: Reference, path: Path, config: Mapping[str, Any]) -> None:
    """A login that a program keeps is not fetched: say so instead of going on without it."""
    helpers = config.get("credHelpers")
    helper = helpers.get(ref.registry) if isinstance(helpers, Mapping) else None
    known = config.get("auths")
    if helper is None and config.get("credsStore") and isinstance(known, Mapping) and ref.registry in known:
        helper = config["credsStore"]
    if helper:
        raise HcpError(
            f"the login for {ref.registry} is kept by the credential helper {helper}, which hcp does not call",
            cause=f"{path} says so",
            hint=f"write it into a file and name that with --authfile: podman login --authfile FILE {ref.registry}",
        )
