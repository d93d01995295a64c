"""Where the update graph of a hosted cluster is: what its spec says, else beside its release. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yarl import URL

from hcp.errors import HcpError
from hcp.oci.reference import Reference

IMAGE = "docker://"
# What `hcp release push` calls the image that carries the graph.
BESIDE = "graph"


@dataclass(frozen=True)
class Question:
    """What is asked, and of whom; another one is asked anew."""

    channel: str
    version: str
    arch: str
    # One of them.
    image: str = ""
    url: str = ""


def question(spec: Mapping[str, Any], cluster_image: str, version: str, arch: str) -> Question:
    """Raises HcpError where the spec names a place that is none."""
    channel, service = str(spec.get("channel") or ""), str(spec.get("updateService") or "")
    if not service:
        ref = Reference.parse(cluster_image)
        folder = ref.repository.rpartition("/")[0]
        return Question(channel, version, arch, image=f"{ref.registry}/{folder}/{BESIDE}:latest".replace("//", "/"))
    if service.startswith(IMAGE):
        return Question(channel, version, arch, image=str(Reference.parse(service.removeprefix(IMAGE))))
    try:
        url = URL(service)
    except ValueError as exc:
        raise HcpError(f"updateService {service[:200]!r} is no URL", cause=str(exc)) from exc
    if url.scheme != "https" or not url.host:
        raise HcpError(
            f"updateService {service[:200]!r} is not asked",
            cause="only https:// and docker:// are",
            hint="name a server that speaks the Cincinnati protocol, or docker://REGISTRY/PATH:TAG with a graph image",
        )
    query = {"channel": channel, "arch": arch, "version": version}
    if cluster_id := spec.get("clusterID"):
        query["id"] = str(cluster_id)
    return Question(channel, version, arch, url=str(url.update_query(query)))
