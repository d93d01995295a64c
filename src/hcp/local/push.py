"""`python -m hcp.local.push [--name NAME] COMPONENT…`: build payload images and push them into a cluster's registry."""

from __future__ import annotations

import asyncio
import sys

from hcp.errors import HcpError
from hcp.local import parts
from hcp.local.addons.images import push, references
from hcp.local.lookup import existing
from hcp.payload import Progress


def main(words: list[str]) -> int:
    name = "default"
    if words[:1] == ["--name"]:
        name, words = words[1], words[2:]
    try:
        layout, _ = existing(name)
        found = parts.ensure(words, Progress())
        asyncio.run(push(layout, found.paths.values(), lambda text: print(text, file=sys.stderr)))
    except HcpError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    for component, reference in references(found.paths).items():
        print(component, reference)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
