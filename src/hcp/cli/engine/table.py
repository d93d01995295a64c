"""Printing lists of objects: as a table, or as they are."""

from __future__ import annotations

import json
import sys
from typing import Any

from hcp.cli.engine.yaml_output import dump

Object = dict[str, Any]


def show_objects(
    form: str, objects: list[Object], header: list[str], rows: list[list[str]], empty: str, *, single: bool = False
) -> None:
    """`form` is the value of -o; wide and table are the caller's rows already. `single`: one was asked for by name."""
    if form == "name":
        for obj in objects:
            print(f"{obj['kind'].lower()}.{obj['apiVersion'].split('/')[0]}/{obj['metadata']['name']}")
    elif form in ("yaml", "json") and single:
        show_data(form, plain(objects[0]))
    elif form in ("yaml", "json"):
        show_data(form, {"apiVersion": "v1", "kind": "List", "items": [plain(obj) for obj in objects]})
    elif not rows:
        print(empty, file=sys.stderr)
    else:
        print(table(header, rows))


def show_data(form: str, data: Any) -> None:
    print(json.dumps(data, indent=2, sort_keys=True) if form == "json" else dump(data).rstrip("\n"))


def plain(obj: Object) -> Object:
    """The object without the book-keeping nobody reads."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def table(header: list[str], rows: list[list[str]], indent: str = "") -> str:
    """Columns as wide as their widest cell, three blanks apart, nothing padded at the end."""
    widths = [max(len(line[column]) for line in [header, *rows]) for column in range(len(header))]
    lines = []
    for line in [header, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        lines.append(indent + "   ".join(cells).rstrip())
    return "\n".join(lines)
