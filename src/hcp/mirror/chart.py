"""The images of a helm chart, as far as they can be known without rendering it. Pure.

They are looked for in the annotations of Chart.yaml, in values (repository, tag, digest, registry; or one text), in
places that the configuration names, and in lines of templates that can be followed.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.errors import HcpError
from hcp.mirror import chart_templates
from hcp.mirror.yaml_text import load
from hcp.oci.reference import is_image

MOST = 32 << 20


@dataclass
class Chart:
    name: str
    version: str = ""
    app_version: str = ""
    images: list[str] = field(default_factory=list)
    # Lines of templates whose image is made by more than values and defaults.
    unknown: list[str] = field(default_factory=list)


def read(files: Mapping[str, bytes], paths: Iterable[str] = ()) -> Chart:
    """`files` by their path in the chart's folder, subcharts included."""
    described = _yaml(files, "Chart.yaml")
    if not isinstance(described, Mapping) or not described.get("name"):
        raise HcpError("the chart has no Chart.yaml with a name", hint="name the folder or the .tgz of a chart")
    chart = Chart(str(described["name"]), str(described.get("version") or ""), str(described.get("appVersion") or ""))
    found: dict[str, None] = {}
    for folder in sorted({path.removesuffix("Chart.yaml") for path in files if path.endswith("Chart.yaml")}):
        own = _yaml(files, f"{folder}Chart.yaml")
        values = _yaml(files, f"{folder}values.yaml")
        version = str((own or {}).get("appVersion") or "") if isinstance(own, Mapping) else ""
        found.update(dict.fromkeys(_annotated(own)))
        found.update(dict.fromkeys(in_values(values, version)))
        for path, data in files.items():
            if path.startswith(f"{folder}templates/") and path.endswith((".yaml", ".yml", ".tpl")):
                text = data.decode("utf-8", "replace")
                for image, known in chart_templates.images(text, values, own if isinstance(own, Mapping) else {}):
                    if known:
                        found[image] = None
                    else:
                        chart.unknown.append(f"{path}: {image}")
        if not folder:
            for path in paths:
                found.update(dict.fromkeys(_at(values, path, version)))
    chart.images = [image for image in found if is_image(image)]
    return chart


def in_values(value: Any, app_version: str) -> Iterator[str]:
    """Images in a tree of values: `image: text`, or a mapping with a repository."""
    if isinstance(value, Mapping):
        made = _described(value, app_version)
        if made:
            yield made
        for key, below in value.items():
            if isinstance(below, str) and str(key).lower() == "image" and below:
                yield below
            else:
                yield from in_values(below, app_version)
    elif isinstance(value, list):
        for below in value:
            yield from in_values(below, app_version)


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of a packed chart, without the folder they are in."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for member in archive:
                inside = member.name.partition("/")[2]
                if member.isreg() and inside and member.size <= MOST:
                    content = archive.extractfile(member)
                    found[inside] = content.read() if content else b""
    except (tarfile.TarError, OSError, EOFError) as error:
        raise HcpError("the chart cannot be unpacked", cause=str(error), hint="name a packed chart (.tgz)") from error
    return found


def _described(value: Mapping[str, Any], app_version: str) -> str:
    repository = value.get("repository")
    if not isinstance(repository, str) or not repository or "://" in repository:
        return ""
    registry = value.get("registry")
    name = f"{registry}/{repository}" if isinstance(registry, str) and registry else repository
    digest, tag = value.get("digest"), value.get("tag")
    if isinstance(digest, str) and digest:
        return f"{name}@{digest}"
    if "tag" not in value and not app_version:
        return ""
    return f"{name}:{tag or app_version}" if (tag or app_version) else name


def _annotated(described: Any) -> list[str]:
    """What chart authors list for this very purpose."""
    import yaml

    text = ((described or {}).get("annotations") or {}).get("artifacthub.io/images") if described else None
    try:
        entries = load(text) if text else []
    except yaml.YAMLError:
        return []
    return [str(one["image"]) for one in entries or () if isinstance(one, Mapping) and one.get("image")]


def _at(values: Any, path: str, app_version: str) -> Iterator[str]:
    """A place in the values, written as `{.some.image}` or `some.image`."""
    for step in path.strip("{} .").split("."):
        values = values.get(step) if isinstance(values, Mapping) else None
    if isinstance(values, str) and values:
        yield values
    elif values is not None:
        yield from in_values(values, app_version)
    else:
        raise HcpError(f"the chart has no value at {path}", hint="imagePaths name places in values.yaml")


def _yaml(files: Mapping[str, bytes], path: str) -> Any:
    import yaml

    try:
        return load(files[path]) if path in files else None
    except yaml.YAMLError as error:
        raise HcpError(f"{path} of the chart is no YAML", cause=str(error).replace("\n", " ")) from error
