"""Reading the release of a hosted cluster: with its pull secret, through the mirrors, with the trusted CAs."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import at
from hcp.errors import HcpError, sentence
from hcp.hostedcluster.cache import Cache
from hcp.hostedcluster.observed import ReleaseState
from hcp.hostedcluster.reading import Readings
from hcp.hostedcluster.registries import Registries
from hcp.kube.resources import CONFIGMAPS, ICSP, IDMS, IMAGE_CONFIGS, ITMS, SECRETS
from hcp.oci import Mirror, RegistryClient, RegistryPool
from hcp.oci import mirrors as oci_mirrors
from hcp.oci.address_policy import AddressPolicy
from hcp.oci.trust import Trust, from_config_map
from hcp.release import Release, read
from hcp.runtime.store import key_of

NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ARCHES = {"amd64": "AMD64", "arm64": "ARM64", "ppc64le": "PPC64LE", "s390x": "S390X"}


class MissingInput(HcpError):
    """A Secret or ConfigMap that the spec names does not exist or lacks its key."""


@dataclass(frozen=True)
class Access:
    """The pull secret, the trust and the mirrors of a cluster, and where its words may lead."""

    auths: Mapping[str, Any]
    bundle: str | None
    mirrors: Sequence[Mirror]
    authorities: Mapping[str, str]
    policy: AddressPolicy

    @property
    def trust(self) -> Trust:
        return Trust(self.bundle, self.authorities)


class Releases:
    """Reads releases for the reconciler; the pool remembers what it read."""

    def __init__(
        self,
        cache: Cache,
        registries: Registries,
        ended: Callable[[str], None] = lambda key: None,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        """`ended` is told which cluster to look at again, after a reading that took long.

        `overrides`: source → mirror; images of releases are named there.
        """
        self._overrides = dict(overrides or {})
        self._cache = cache
        self._readings = Readings(ended)
        self._registries = registries
        self._pool = RegistryPool()

    async def close(self) -> None:
        await self._readings.close()
        await self._pool.close()

    def forget(self, key: str) -> None:
        self._readings.forget(key)

    async def read(
        self, cluster: Mapping[str, Any], *, image: str | None = None
    ) -> tuple[Release | None, ReleaseState]:
        """The release, and what to say about it."""
        wanted = image or (cluster["spec"].get("controlPlaneRelease") or cluster["spec"]["release"])["image"]
        try:
            release = await self._read(cluster, wanted)
        except MissingInput as exc:
            return None, ReleaseState(image=wanted, reason=c.SECRET_NOT_FOUND, problem=sentence(exc))
        except HcpError as exc:
            return None, ReleaseState(image=wanted, reason=c.INVALID_IMAGE, problem=sentence(exc))
        missing = tuple(n for n in NEEDED if n not in release.components)
        arch = ARCHES.get(release.arch, "")
        return release, ReleaseState(version=release.version, image=wanted, arch=arch, missing=missing)

    async def read_or_raise(self, cluster: Mapping[str, Any], image: str) -> Release:
        """The release, or the error that kept it from being read."""
        return await self._read(cluster, image)

    async def _read(self, cluster: Mapping[str, Any], image: str) -> Release:
        client = self.client(await self.access(cluster))
        found = await self._readings.wait(key_of(dict(cluster)), image, client, partial(read, client, image))
        return moved(found, self._overrides)

    def client(self, access: Access) -> RegistryClient:
        """The registry client that a cluster's word leads anywhere with."""
        return self._pool.get(access.auths, access.bundle, access.mirrors, access.authorities, access.policy)

    async def access(self, cluster: Mapping[str, Any]) -> Access:
        """How places that this cluster names are reached."""
        spec, ns = cluster["spec"], cluster["metadata"]["namespace"]
        auths = await self._pull_secret(ns, spec["pullSecret"]["name"])
        bundle = None
        if name := at(spec, "additionalTrustBundle.name"):
            found = await self._cache.user_object(CONFIGMAPS, name, ns)
            bundle = ((found or {}).get("data") or {}).get(names.CA_BUNDLE_KEY)
            if not bundle:
                raise MissingInput(f"The ConfigMap {ns}/{name} with key {names.CA_BUNDLE_KEY} does not exist")
        overridden = [Mirror(source, (mirror,)) for source, mirror in self._overrides.items()]
        declared = [*overridden, *oci_mirrors.from_objects(self._mirror_objects())]
        mirrors = [*declared, *oci_mirrors.from_image_content_sources(spec.get("imageContentSources"))]
        cas = await self._registry_cas()
        address_policy = self._registries.address_policy(self._cache.get(IMAGE_CONFIGS, "cluster"), cas, declared)
        return Access(auths, bundle, mirrors, cas, address_policy)

    def _mirror_objects(self) -> Iterable[Mapping[str, Any]]:
        return [one for kind in (IDMS, ITMS, ICSP) for one in self._cache.list(kind)]

    async def _pull_secret(self, ns: str, name: str) -> dict[str, Any]:
        found = await self._cache.user_object(SECRETS, name, ns)
        data = ((found or {}).get("data") or {}).get(names.PULL_SECRET_KEY)
        if not data:
            raise MissingInput(
                f"The pull secret {ns}/{name} with key {names.PULL_SECRET_KEY} does not exist",
                hint="Create it; the cluster goes on by itself.",
            )
        try:
            parsed = json.loads(base64.b64decode(data))
        except ValueError as exc:
            raise MissingInput(f"The pull secret {ns}/{name} is not JSON", cause=str(exc)) from exc
        if not isinstance(parsed, dict):
            raise MissingInput(f"The pull secret {ns}/{name} is not a JSON object")
        return parsed

    async def _registry_cas(self) -> dict[str, str]:
        """What the management cluster itself trusts, per registry."""
        config = self._cache.get(IMAGE_CONFIGS, "cluster")
        name = at(config, "spec.additionalTrustedCA.name")
        if not name:
            return {}
        found = await self._cache.user_object(CONFIGMAPS, name, names.CONFIG_NAMESPACE)
        return from_config_map((found or {}).get("data"))


def moved(release: Release, overrides: Mapping[str, str]) -> Release:
    """The release with its images where the administrator has them; the same digests, so the same images."""
    if not overrides:
        return release
    images = {name: oci_mirrors.override(image, overrides) for name, image in release.components.items()}
    disk = release.boot_disk and oci_mirrors.override(release.boot_disk, overrides)
    return replace(release, components=images, boot_disk=disk)
