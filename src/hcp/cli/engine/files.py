"""Files the user names: read once, checked for their form, and refused with the flag that named them."""

from __future__ import annotations

from hcp.cli.engine.command import UsageError
from hcp.cli.engine.terminal import warn
from hcp.errors import HcpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BEGIN = "-----BEGIN "
END = "-----END "
# A Secret or ConfigMap holds a mebibyte; whatever is larger is not what the flag asks for.
MOST = 1 << 20


def read(flag: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs half of what a render may
            data = file.read(MOST + 1)
    except OSError as error:
        raise UsageError(
            f'cannot read the file "{path}" given with --{flag}',
            cause=error.strerror or str(error),
            hint=f"--{flag} takes the path of a readable file",
        ) from None
    except ValueError as error:
        raise UsageError(f'cannot read the file "{path!r}" given with --{flag}', cause=str(error)) from None
    if len(data) > MOST:
        raise refuse(flag, path, "it is larger than 1 MiB", "a file that fits into a Secret, at most 1 MiB")
    return data


def refuse(flag: str, path: str, why: str, allowed: str) -> UsageError:
    return UsageError(
        f'the file "{path}" given with --{flag} cannot be used', cause=why, hint=f"it has to be {allowed}"
    )


def pull_secret(path: str) -> bytes:
    """Docker's config.json: an object with `auths`, which may be empty."""
    import json

    allowed = 'JSON such as {"auths": {"registry.example.com": {"auth": "…"}}}'
    data = read("pull-secret", path)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise refuse("pull-secret", path, f"it is not JSON: {error}", allowed) from None
    if not isinstance(found, dict) or not isinstance(found.get("auths"), dict):
        raise refuse("pull-secret", path, 'there is no object "auths" in it', allowed)
    return data


def trust_bundle(path: str) -> str:
    """PEM certificates; comment lines between them are tolerated, as the guides show them."""
    flag, allowed = "additional-trust-bundle", "one or more PEM certificates (-----BEGIN CERTIFICATE-----)"
    text = as_text(flag, path, allowed)
    inside, blocks = False, 0
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith((BEGIN, END)) and bare.endswith("-----"):
            if inside == bare.startswith(BEGIN):
                raise refuse(flag, path, f"line {number}: BEGIN and END do not alternate", allowed)
            inside = not inside
            blocks += inside
        elif not inside and bare and not bare.startswith(("//", "#")) and ":" not in bare:
            raise refuse(flag, path, f"line {number} is neither a certificate nor a // comment", allowed)
    if inside or not blocks:
        raise refuse(flag, path, "it holds no complete PEM block", allowed)
    return text


def as_text(flag: str, path: str, allowed: str) -> str:
    try:
        return read(flag, path).decode()
    except UnicodeDecodeError:
        raise refuse(flag, path, "it is not UTF-8 text", allowed) from None


def ssh_key(path: str) -> bytes:
    """A public key in authorized_keys form; a private key must not travel to the nodes."""
    data = read("ssh-key", path)
    if b"PRIVATE KEY" in data:
        raise refuse("ssh-key", path, "it is a private key", "a public key, usually the same name with .pub")
    if not data.strip():
        raise refuse("ssh-key", path, "it is empty", "a public key")
    return data


def kubeconfig(flag: str, path: str, *, lenient: bool = False) -> bytes:
    """A kubeconfig that may go into a Secret; `lenient` takes any YAML and only warns, for placeholders."""
    allowed = "a kubeconfig (YAML with clusters, users and contexts)"
    data = read(flag, path)
    found = _yaml(flag, path, data, allowed)
    if not isinstance(found, dict) or not isinstance(found.get("clusters"), list) or not found["clusters"]:
        if not lenient:
            raise refuse(flag, path, "there is no list of clusters in it", allowed)
        warn(f'the file "{path}" given with --{flag} is no kubeconfig: there is no list of clusters in it')
        return data
    from hcp.kube import untrusted_kubeconfig

    try:
        untrusted_kubeconfig.load(data, f'the file "{path}" given with --{flag}')
    except HcpError as error:
        if not lenient:
            raise UsageError(error.sentence, cause=error.cause, hint=error.hint) from None
        warn(f"{error}; the operator will refuse it as it is")
    return data


def image_content_sources(path: str) -> list[dict[str, Any]]:
    """A YAML list of {source, mirrors}; other keys are dropped."""
    flag, allowed = "image-content-sources", "a YAML list of entries with source and mirrors"
    found = _yaml(flag, path, read(flag, path), allowed)
    if found is None:
        return []
    if not isinstance(found, list):
        raise refuse(flag, path, "it is not a list", allowed)
    entries = []
    for number, item in enumerate(found, 1):
        if not isinstance(item, dict) or not isinstance(item.get("source"), str) or not item["source"]:
            raise refuse(flag, path, f"entry {number} has no source", allowed)
        mirrors = item.get("mirrors") or []
        if not isinstance(mirrors, list) or not all(isinstance(mirror, str) for mirror in mirrors):
            raise refuse(flag, path, f"the mirrors of entry {number} are not a list of names", allowed)
        entry: dict[str, Any] = {"source": item["source"]}
        if mirrors:
            entry["mirrors"] = mirrors
        entries.append(entry)
    return entries


def _yaml(flag: str, path: str, data: bytes, allowed: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise refuse(flag, path, "it is not YAML: " + " ".join(str(error).split()), allowed) from None
