"""Which release a cluster runs when the user names none."""

from __future__ import annotations

import json
from typing import Any

from hcp.api import names
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import CONFIGMAPS

HINT = "give one with --release-image REGISTRY/REPOSITORY:TAG"
STREAMS = "https://{arch}.ocp.releases.ci.openshift.org/api/v1/releasestream/{stream}/tags"
ARCHES = ("multi", "arm64", "ppc64le", "s390x")


async def default_release(client: Client) -> str:
    """What `hcp install` wrote down as the operator's default."""
    found = await client.get_or_none(CONFIGMAPS, names.SUPPORTED_VERSIONS, names.OPERATOR_NAMESPACE)
    where = f"ConfigMap {names.SUPPORTED_VERSIONS} in namespace {names.OPERATOR_NAMESPACE}"
    if found is None:
        raise HcpError(
            "no --release-image is given and the management cluster names no default",
            cause=f"{where} does not exist",
            hint=f"{HINT}, or install the operator with hcp install",
        )
    image = str((found.get("data") or {}).get(names.DEFAULT_RELEASE_KEY) or "").strip()
    if not image:
        raise HcpError(
            "no --release-image is given and the management cluster names no default",
            cause=f"{where} has no key {names.DEFAULT_RELEASE_KEY}",
            hint=HINT,
        )
    return image


def supported(config_map: dict[str, Any]) -> list[str]:
    """The X.Y versions the operator supports; raises HcpError naming what is wrong with the ConfigMap."""
    data = config_map.get("data") or {}
    if names.SUPPORTED_VERSIONS_KEY not in data:
        raise HcpError(f"the ConfigMap {names.SUPPORTED_VERSIONS} has no key {names.SUPPORTED_VERSIONS_KEY}")
    try:
        versions = json.loads(data[names.SUPPORTED_VERSIONS_KEY])["versions"]
        return [str(version) for version in versions]
    except (ValueError, KeyError, TypeError) as error:
        raise HcpError(
            f"the ConfigMap {names.SUPPORTED_VERSIONS} cannot be read",
            cause=f'{names.SUPPORTED_VERSIONS_KEY} is not {{"versions": […]}}: {error}',
        ) from None


async def from_stream(client: Client, stream: str) -> str:
    """The newest release of an OpenShift stream that the operator supports; needs the internet."""
    import aiohttp

    found = await client.list(CONFIGMAPS, labels=f"{names.LABEL_SUPPORTED_VERSIONS}=true")
    config_map = next((item for item in found if item["metadata"]["name"] == names.SUPPORTED_VERSIONS), None)
    failed = f"the release stream {stream!r} cannot be looked up"
    if config_map is None:
        raise HcpError(failed, cause=f"there is no ConfigMap {names.SUPPORTED_VERSIONS}", hint=HINT)
    arch = next((arch for arch in ARCHES if stream.endswith(f"-{arch}")), "amd64")
    url = STREAMS.format(arch=arch, stream=stream)
    try:
        limit = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(timeout=limit, trust_env=True) as session, session.get(url) as answer:
            answer.raise_for_status()
            tags = (await answer.json(content_type=None)).get("tags") or []
    except (aiohttp.ClientError, TimeoutError, ValueError, AttributeError) as error:
        raise HcpError(failed, cause=f"{url}: {error or type(error).__name__}", hint=HINT) from None
    image = newest(tags, supported(config_map))
    if not image:
        raise HcpError(failed, cause="it has no release that the operator supports", hint=HINT)
    return image


def newest(tags: list[dict[str, Any]], versions: list[str]) -> str:
    """The pull spec of the newest tag with a supported X.Y in its name; release candidates do not count."""
    finals = [tag for tag in tags if "rc" not in str(tag.get("name", ""))]
    finals.sort(key=lambda tag: _order(str(tag.get("name", ""))), reverse=True)
    for tag in finals:
        if any(version in str(tag.get("name", "")) for version in versions):
            return str(tag.get("pullSpec") or "")
    return ""


def _order(name: str) -> tuple[bool, tuple[int, ...], str]:
    numbers = name.split("-", maxsplit=1)[0].split(".")
    if all(number.isdigit() for number in numbers):
        return True, tuple(int(number) for number in numbers), name
    return False, (), name
