"""The files a run leaves: objects for clusters, the mapping, and what went wrong."""

from __future__ import annotations

import json
import time
from pathlib import Path

from hcp.mirror import resources
from hcp.mirror.plan import Item, Plan, Problem
from hcp.mirror.workspace import Workspace, now
from hcp.mirror.yaml_text import dump
from hcp.publish.target import Target

RESULTS = "oc-mirror-workspace"


def write_resources(workspace: Workspace, plan: Plan, target: Target) -> list[Path]:
    """What a cluster is to be told, in files to apply."""
    digests, tags = resources.mirror_sets(plan, target)
    files = {"idms-oc-mirror.yaml": digests, "itms-oc-mirror.yaml": tags}
    for catalog in plan.catalogs:
        name = resources.catalog_name(catalog)
        files[f"cs-{name}.yaml"] = [resources.catalog_source(catalog, target)]
        files[f"cc-{name}.yaml"] = [resources.cluster_catalog(catalog, target)]
    service = resources.update_service(plan, target)
    files["updateService.yaml"] = [service] if service else []
    signatures = resources.signatures(plan.signatures)
    files["signature-configmap.yaml"] = [signatures] if signatures else []
    texts = {name: dump(documents) for name, documents in files.items() if documents}
    if signatures:
        texts["signature-configmap.json"] = json.dumps(signatures, indent=2) + "\n"
    if workspace.resources.is_dir():
        for old in workspace.resources.iterdir():
            if old.name not in texts:
                old.unlink()
    for name, text in texts.items():
        workspace.write(workspace.resources / name, text)
    return [workspace.resources / name for name in texts]


def write_results(workspace: Workspace, here: Path, plan: Plan, target: Target) -> Path:
    """The older layout beside it: `oc-mirror-workspace/results-<seconds>/`. The same result is written once."""
    texts = {"mapping.txt": mapping(plan, target)}
    policies = resources.content_source_policies(plan, target)
    if policies:
        texts["imageContentSourcePolicy.yaml"] = dump(policies)
    for catalog in plan.catalogs:
        source = resources.catalog_source(catalog, target)
        last = catalog.repository.rpartition("/")[2]
        texts[f"catalogSource-cs-{last}.yaml"] = dump([source])
    results = here / RESULTS
    newest = max(results.glob("results-*"), key=lambda path: path.name, default=None) if results.is_dir() else None
    if newest is not None and {path.name: path.read_text() for path in newest.iterdir()} == texts:
        return newest
    folder = results / f"results-{int(time.time())}"
    for name, text in texts.items():
        workspace.write(folder / name, text)
    return folder


def mapping(plan: Plan, target: Target | None, items: list[Item] | None = None) -> str:
    """`source=target` line by line; without a registry, what will be below one."""
    lines = []
    for item in plan.items if items is None else items:
        source = f"docker://{item.source}" if item.source else f"made here ({item.made})"
        place = f"docker://{target.registry}/{target.repository(item.repository)}" if target else item.repository
        lines.append(f"{source}={place}:{item.tag}\n")
    return "".join(lines)


def write_errors(workspace: Workspace, problems: list[Problem]) -> Path:
    path = workspace.logs / f"mirroring_errors_{now()}.txt"
    lines = [f"{one.kind}: {one.what}: {one.sentence}" + (f" ({one.hint})" if one.hint else "") for one in problems]
    workspace.write(path, "\n".join(lines) + "\n")
    return path
