"""Write the CRDs as YAML beside the types: ``python -m hcp.api.generate``.

The files are for people and other tools; our own code takes the same dicts from ``crds()``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from hcp.api import controlplanecomponent, hostedcluster, hostedcontrolplane, nodepool, noderepair

FOLDER = Path(__file__).parent / "crds"
HEADER = "# Generated from hcp.api by `python -m hcp.api.generate`. Do not edit.\n"


def crds() -> list[dict[str, Any]]:
    """Our CustomResourceDefinitions, in the order they are installed."""
    kinds = (hostedcluster, nodepool, hostedcontrolplane, controlplanecomponent)
    return [*(kind.build() for kind in kinds), *noderepair.build()]


class _Dumper(yaml.SafeDumper):
    """Writes repeated values in full: anchors surprise readers and some tools."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(manifest: dict[str, Any]) -> str:
    body: str = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=118, allow_unicode=True)
    return HEADER + body


def files() -> dict[Path, str]:
    """What each file should hold."""
    return {FOLDER / f"{manifest['metadata']['name']}.yaml": dump(manifest) for manifest in crds()}


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    wanted = files()
    for old in set(FOLDER.glob("*.yaml")) - set(wanted):
        old.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
