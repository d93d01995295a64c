"""File-based catalogs: reading their documents, and keeping only what is asked for of them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from hcp.errors import HcpError
from hcp.graph import Version, order
from hcp.mirror.config import Package, Versions
from hcp.mirror.yaml_text import load_all

Document = dict[str, Any]
_SPACE = re.compile(r"\s*")


@dataclass
class Operator:
    """One package of a catalog: its documents by what they are."""

    name: str
    package: Document = field(default_factory=dict)
    channels: dict[str, Document] = field(default_factory=dict)
    bundles: dict[str, Document] = field(default_factory=dict)
    others: list[Document] = field(default_factory=list)

    @property
    def documents(self) -> list[Document]:
        return [self.package, *self.channels.values(), *self.bundles.values(), *self.others]

    @property
    def images(self) -> list[str]:
        """The bundles and all they need, each once."""
        found: dict[str, None] = {}
        for bundle in self.bundles.values():
            named = [bundle.get("image"), *(one.get("image") for one in bundle.get("relatedImages") or ())]
            found.update(dict.fromkeys(str(image) for image in named if image))
        return list(found)

    def version(self, bundle: str) -> str:
        for one in self.bundles.get(bundle, {}).get("properties") or ():
            if one.get("type") == "olm.package":
                return str((one.get("value") or {}).get("version") or "")
        return ""

    def head(self, channel: str) -> str:
        """The bundle that none of the channel replaces or skips."""
        entries = _entries(self.channels[channel])
        passed = {str(one.get("replaces")) for one in entries}
        passed |= {str(skipped) for one in entries for skipped in one.get("skips") or ()}
        heads = [str(one["name"]) for one in entries if one["name"] not in passed] or [str(e["name"]) for e in entries]
        return max(heads, key=lambda name: order(self.version(name)))


def read_documents(path: str, data: bytes) -> Iterator[Document]:
    """All documents of one file of a catalog: JSON one after the other, or YAML."""
    if path.endswith((".yaml", ".yml")):
        import yaml

        try:
            found = [one for one in load_all(data) if one is not None]
        except yaml.YAMLError as error:
            raise _bad(path, str(error).replace("\n", " ")) from error
    else:
        decoder, text, at, found = json.JSONDecoder(), data.decode("utf-8", "replace"), 0, []
        try:
            while (at := _after_space(text, at)) < len(text):
                one, at = decoder.raw_decode(text, at)
                found.append(one)
        except (ValueError, RecursionError) as error:
            raise _bad(path, str(error)) from error
    for one in found:
        if not isinstance(one, dict):
            raise _bad(path, "it holds something else than documents")
        yield one


def group(documents: Iterable[Document]) -> dict[str, Operator]:
    """Documents by package; those of no package belong to no operator and are left out."""
    found: dict[str, Operator] = {}
    for one in documents:
        schema = one.get("schema")
        name = str((one.get("name") if schema == "olm.package" else one.get("package")) or "")
        if not name:
            continue
        operator = found.setdefault(name, Operator(name))
        if schema == "olm.package":
            operator.package = one
        elif schema == "olm.channel":
            operator.channels[str(one.get("name"))] = one
        elif schema == "olm.bundle":
            operator.bundles[str(one.get("name"))] = one
        else:
            operator.others.append(one)
    return found


def chosen(operators: dict[str, Operator], catalog: str, wanted: Package) -> Operator:
    """A package with what is asked for of it; HcpError names what the catalog does not have."""
    if wanted.name not in operators or not operators[wanted.name].package:
        close = get_close_matches(wanted.name, operators, 3) or sorted(operators)[:8]
        raise HcpError(
            f"the catalog {catalog} has no package {wanted.name}", hint=f"it has {', '.join(close)}, among others"
        )
    operator = operators[wanted.name]
    kept = _kept(operator, wanted)
    made = Operator(operator.name, dict(operator.package), others=operator.others)
    for name, bundles in kept.items():
        made.channels[name] = _channel(operator, name, bundles)
        made.bundles.update({bundle: operator.bundles[bundle] for bundle in bundles})
    default = wanted.default_channel or str(operator.package.get("defaultChannel"))
    if default not in made.channels:
        if wanted.default_channel:
            raise _no_channel(operator, wanted.default_channel)
        default = max(made.channels, key=lambda name: order(made.version(made.head(name))))
    made.package["defaultChannel"] = default
    return made


def newest(operator: Operator) -> Operator:
    """What is taken of a package that nobody asked for by name: the head of its default channel."""
    return chosen({operator.name: operator}, "", Package(operator.name))


def dump(operator: Operator) -> bytes:
    return b"".join(json.dumps(one, sort_keys=True).encode() + b"\n" for one in operator.documents if one)


def _kept(operator: Operator, wanted: Package) -> dict[str, set[str]]:
    """Bundles by channel."""
    if wanted.bundles:
        return _by_name(operator, wanted)
    if wanted.channels:
        return {one.name: _in_channel(operator, one) for one in wanted.channels}
    if wanted.lowest or wanted.highest:
        found = {name: _between(operator, Versions(name, wanted.lowest, wanted.highest)) for name in operator.channels}
        found = {name: bundles for name, bundles in found.items() if bundles}
        if not found:
            raise _no_version(operator, "", wanted)
        return found
    default = str(operator.package.get("defaultChannel"))
    return {default: _in_channel(operator, Versions(default))}


def _by_name(operator: Operator, wanted: Package) -> dict[str, set[str]]:
    for name in wanted.bundles:
        if name not in operator.bundles:
            close = get_close_matches(name, operator.bundles, 3)
            raise HcpError(
                f"the package {operator.name} has no bundle {name}",
                hint=f"it has {', '.join(close or list(operator.bundles)[:8])}",
            )
    wanted_bundles = set(wanted.bundles)
    found = {
        name: wanted_bundles & {str(one["name"]) for one in _entries(channel)}
        for name, channel in operator.channels.items()
    }
    return {name: bundles for name, bundles in found.items() if bundles}


def _in_channel(operator: Operator, wanted: Versions) -> set[str]:
    if wanted.name not in operator.channels:
        raise _no_channel(operator, wanted.name)
    if not (wanted.lowest or wanted.highest):
        return {operator.head(wanted.name)}
    found = _between(operator, wanted)
    if not found:
        raise _no_version(operator, wanted.name, wanted)
    return found


def _between(operator: Operator, wanted: Versions) -> set[str]:
    low = Version.parse(wanted.lowest) if wanted.lowest else None
    high = Version.parse(wanted.highest) if wanted.highest else None
    found = set()
    for one in _entries(operator.channels[wanted.name]):
        name = str(one["name"])
        version = order(operator.version(name))
        if name in operator.bundles and (low is None or version >= low) and (high is None or version <= high):
            found.add(name)
    return found


def _channel(operator: Operator, name: str, bundles: set[str]) -> Document:
    """A channel with these bundles alone: what replaced one that is gone replaces the one before it."""
    entries = {str(one["name"]): one for one in _entries(operator.channels[name])}
    kept = []
    for one in entries.values():
        if one["name"] not in bundles:
            continue
        entry = dict(one)
        before, seen = str(entry.get("replaces") or ""), set()
        while before and before not in bundles and before in entries and before not in seen:
            seen.add(before)
            before = str(entries[before].get("replaces") or "")
        if before in bundles:
            entry["replaces"] = before
        kept.append(entry)
    made = {**operator.channels[name], "entries": kept}
    passed = {one.get("replaces") for one in kept} | {skipped for one in kept for skipped in one.get("skips") or ()}
    heads = sorted((one for one in kept if one["name"] not in passed), key=lambda e: order(operator.version(e["name"])))
    if len(heads) > 1:  # a channel has one head
        top = heads[-1]
        top["skips"] = [*(top.get("skips") or ()), *(one["name"] for one in heads[:-1])]
    return made


def _entries(channel: Document) -> list[Document]:
    return [one for one in channel.get("entries") or () if isinstance(one, dict) and one.get("name")]


def _no_channel(operator: Operator, name: str) -> HcpError:
    return HcpError(
        f"the package {operator.name} has no channel {name}", hint=f"it has {', '.join(sorted(operator.channels))}"
    )


def _no_version(operator: Operator, channel: str, wanted: Versions) -> HcpError:
    where = f"the channel {channel} of the package {operator.name}" if channel else f"the package {operator.name}"
    bundles = [str(e["name"]) for e in _entries(operator.channels[channel])] if channel else list(operator.bundles)
    versions = sorted({operator.version(name) for name in bundles}, key=order, reverse=True)[:8]
    bounds = f"between {wanted.lowest or 'the first'} and {wanted.highest or 'the newest'}"
    return HcpError(f"{where} has no version {bounds}", hint=f"its newest are {', '.join(versions)}")


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _bad(path: str, cause: str) -> HcpError:
    return HcpError(f"the file {path} of the catalog cannot be read", cause=cause, hint="the catalog is broken")
