"""Helm charts of an image set: fetched, kept for the other side, and the images they name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from yarl import URL

from hcp.errors import HcpError
from hcp.graph import order
from hcp.mirror import chart as charts
from hcp.mirror import fetch
from hcp.mirror.config import Chart
from hcp.mirror.plan import Item
from hcp.mirror.scope import Scope
from hcp.mirror.yaml_text import load
from hcp.oci.trust import Trust


async def plan_chart(scope: Scope, chart: Chart, kept: Path) -> list[str]:
    """Lines of its templates whose image is not known. The chart's file lies in `kept` afterwards."""
    if chart.path:
        files = await asyncio.to_thread(_local, Path(chart.path))
    else:
        files = charts.unpack(await _fetched(chart, kept, scope.trust))
    found = charts.read(files, chart.image_paths)

    async def one(image: str) -> list[Item]:
        with scope.problems("helm", f"{image} of the chart {found.name}"):
            return await scope.found("helm", image)
        return []

    await scope.add_all(one(image) for image in found.images)
    return found.unknown


async def _fetched(chart: Chart, kept: Path, trust: Trust) -> bytes:
    import yaml

    if chart.version:
        known = kept / f"{chart.name}-{chart.version}.tgz"
        if known.is_file():
            return await asyncio.to_thread(known.read_bytes)
    base = URL(chart.repository.rstrip("/") + "/")
    try:
        index = load(await fetch.get(base / "index.yaml", trust))
        entries = [one for one in (index.get("entries") or {}).get(chart.name) or () if one.get("version")]
    except (yaml.YAMLError, AttributeError, TypeError) as error:
        raise HcpError(f"{base} is no chart repository", cause=str(error), hint="it needs an index.yaml") from error
    chosen = _chosen(chart, entries)
    version = str(chosen["version"])
    path = kept / f"{chart.name}-{version}.tgz"
    if path.is_file():
        return await asyncio.to_thread(path.read_bytes)
    data = await fetch.get(base.join(URL(str((chosen.get("urls") or [""])[0]))), trust)
    charts.unpack(data)
    await asyncio.to_thread(_keep, path, data)
    return data


def _chosen(chart: Chart, entries: list[dict[str, Any]]) -> dict[str, Any]:
    if not entries:
        raise HcpError(
            f"the repository {chart.repository} has no chart {chart.name}", hint="helm search repo lists them"
        )
    ordered = sorted(entries, key=lambda one: order(str(one["version"])), reverse=True)
    if not chart.version:
        return ordered[0]
    for one in ordered:
        if str(one["version"]).removeprefix("v") == chart.version.removeprefix("v"):
            return one
    newest = ", ".join(str(one["version"]) for one in ordered[:8])
    raise HcpError(f"the chart {chart.name} has no version {chart.version}", hint=f"its newest are {newest}")


def _keep(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.rename(path)


def _local(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return charts.unpack(path.read_bytes())
    if not (path / "Chart.yaml").is_file():
        raise HcpError(f"{path} is no chart", cause="it has no Chart.yaml", hint="name a chart's folder or .tgz")
    files = [file for file in path.rglob("*") if file.is_file() and file.stat().st_size <= charts.MOST]
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}
