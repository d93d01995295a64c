"""The image set configuration: what is to be mirrored, as `mirror.openshift.io/v2alpha1` says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.errors import HcpError
from hcp.mirror.fields import Fields

API_VERSION = "mirror.openshift.io/v2alpha1"
MIRROR_KIND, DELETE_KIND = "ImageSetConfiguration", "DeleteImageSetConfiguration"
ARCHITECTURES = ("amd64", "arm64", "ppc64le", "s390x", "multi")


@dataclass(frozen=True)
class Versions:
    """A part of something that has versions: a channel of releases, a package, a channel of a package."""

    name: str
    lowest: str = ""
    highest: str = ""


@dataclass(frozen=True)
class ReleaseChannel(Versions):
    kind: str = "ocp"
    full: bool = False
    shortest_path: bool = False


@dataclass(frozen=True)
class Platform:
    channels: tuple[ReleaseChannel, ...] = ()
    releases: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ("amd64",)
    graph: bool = False
    boot_disk: bool = False


@dataclass(frozen=True)
class Package(Versions):
    channels: tuple[Versions, ...] = ()
    bundles: tuple[str, ...] = ()
    default_channel: str = ""


@dataclass(frozen=True)
class Catalog:
    image: str
    full: bool = False
    packages: tuple[Package, ...] = ()
    target: str = ""
    target_tag: str = ""
    template: str = ""


@dataclass(frozen=True)
class AdditionalImage:
    name: str
    target_repository: str = ""
    target_tag: str = ""


@dataclass(frozen=True)
class Chart:
    """In a repository (with its address), or in a folder or file here."""

    name: str
    version: str = ""
    repository: str = ""
    path: str = ""
    image_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageSet:
    platform: Platform = field(default_factory=Platform)
    catalogs: tuple[Catalog, ...] = ()
    additional: tuple[AdditionalImage, ...] = ()
    blocked: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    # GiB; 0 for one archive of any size.
    archive_size: int = 0

    @property
    def is_empty(self) -> bool:
        platform = self.platform
        return not (platform.channels or platform.releases or self.catalogs or self.additional or self.charts)


def parse(document: Any, *, delete: bool = False) -> ImageSet:
    """Read a configuration; HcpError names the field that is wrong."""
    kind, section = (DELETE_KIND, "delete") if delete else (MIRROR_KIND, "mirror")
    if not isinstance(document, Mapping):
        raise HcpError("the image set configuration is no YAML mapping", hint=f"it begins with kind: {kind}")
    said = str(document.get("apiVersion"))
    if said != API_VERSION:
        hint = f"write apiVersion: {API_VERSION}"
        if said.startswith("mirror.openshift.io/v1"):
            hint += " and leave storageConfig out: the workspace remembers what was mirrored"
        raise HcpError(f'the image set configuration has the apiVersion "{said}"', hint=hint)
    if document.get("kind") != kind:
        raise HcpError(f'the configuration is of kind "{document.get("kind")}", not {kind}', hint=f"write kind: {kind}")
    top = Fields(document, "")
    top.only("apiVersion", "kind", "metadata", "archiveSize", section)
    body = top.inside(section)
    body.only("platform", "operators", "additionalImages", "blockedImages", "helm")
    found = ImageSet(
        _platform(body.inside("platform")),
        tuple(_catalog(one) for one in body.each("operators")),
        tuple(_additional(one) for one in body.each("additionalImages")),
        tuple(one.need("name") for one in body.each("blockedImages")),
        _charts(body.inside("helm")),
        top.number("archiveSize"),
    )
    if found.is_empty:
        raise HcpError(
            "the image set configuration asks for nothing",
            hint=f"below {section}: name platform channels, operators, additionalImages or helm charts",
        )
    return found


def _platform(one: Fields) -> Platform:
    one.only("channels", "release", "releases", "architectures", "graph", "kubeVirtContainer")
    architectures = tuple(one.texts("architectures")) or ("amd64",)
    for name in architectures:
        if name not in ARCHITECTURES:
            raise one.wrong("architectures", f'"{name}" is none', f"allowed: {', '.join(ARCHITECTURES)}")
    releases = [one.text("release"), *one.texts("releases")]
    return Platform(
        tuple(_release_channel(channel) for channel in one.each("channels")),
        tuple(release for release in releases if release),
        architectures,
        one.flag("graph"),
        one.flag("kubeVirtContainer"),
    )


def _release_channel(one: Fields) -> ReleaseChannel:
    one.only("name", "minVersion", "maxVersion", "type", "full", "shortestPath")
    kind = one.text("type") or "ocp"
    if kind not in ("ocp", "okd"):
        raise one.wrong("type", f'"{kind}" is no type of platform', "allowed: ocp, okd")
    full, shortest = one.flag("full"), one.flag("shortestPath")
    return ReleaseChannel(one.need("name"), *_bounds(one), kind=kind, full=full, shortest_path=shortest)


def _bounds(one: Fields) -> tuple[str, str]:
    from hcp.graph import Version

    lowest, highest = one.text("minVersion"), one.text("maxVersion")
    for name, text in (("minVersion", lowest), ("maxVersion", highest)):
        try:
            Version.parse(text or "0.0.0")
        except HcpError as error:
            raise one.wrong(name, str(error), str(error.hint)) from error
    if lowest and highest and Version.parse(highest) < Version.parse(lowest):
        raise one.wrong("minVersion", f"{lowest} is newer than maxVersion {highest}", "exchange them")
    return lowest, highest


def _catalog(one: Fields) -> Catalog:
    one.only("catalog", "full", "packages", "targetCatalog", "targetTag", "targetCatalogSourceTemplate")
    return Catalog(
        one.need("catalog"),
        one.flag("full"),
        tuple(_package(package) for package in one.each("packages")),
        one.text("targetCatalog"),
        one.text("targetTag"),
        one.text("targetCatalogSourceTemplate"),
    )


def _package(one: Fields) -> Package:
    one.only("name", "channels", "minVersion", "maxVersion", "bundles", "selectedBundles", "defaultChannel")
    channels = []
    for channel in one.each("channels"):
        channel.only("name", "minVersion", "maxVersion")
        channels.append(Versions(channel.need("name"), *_bounds(channel)))
    bundles = [bundle.need("name") for bundle in (*one.each("bundles"), *one.each("selectedBundles"))]
    bounds = _bounds(one)
    if any(bounds) and channels:
        raise one.wrong("minVersion", "versions are given for the package and channels are named", "use one of both")
    return Package(one.need("name"), *bounds, tuple(channels), tuple(bundles), one.text("defaultChannel"))


def _additional(one: Fields) -> AdditionalImage:
    one.only("name", "targetRepo", "targetTag")
    return AdditionalImage(one.need("name"), one.text("targetRepo"), one.text("targetTag"))


def _charts(one: Fields) -> tuple[Chart, ...]:
    one.only("repositories", "local")
    found = []
    for repository in one.each("repositories"):
        repository.only("name", "url", "charts")
        for chart in repository.each("charts"):
            chart.only("name", "version", "imagePaths")
            paths = tuple(chart.texts("imagePaths"))
            found.append(Chart(chart.need("name"), chart.text("version"), repository.need("url"), "", paths))
    for chart in one.each("local"):
        chart.only("name", "path", "imagePaths")
        found.append(Chart(chart.need("name"), path=chart.need("path"), image_paths=tuple(chart.texts("imagePaths"))))
    return tuple(found)
