"""What mkdocs asks while it builds the site: the generated pages, and their place in the navigation."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.docs import commands, fields

# Pages of the repository's top folder that are part of the site.
FROM_TOP = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def generated() -> dict[str, str]:
    """Every page that is not a file in docs/, by its path there."""
    top = {page: _from_top((ROOT / source).read_text()) for page, source in FROM_TOP.items()}
    return {**commands.pages(), **fields.pages(), **top}


def _from_top(text: str) -> str:
    """Links that are right in the top folder, as they are right in docs/."""
    for page, source in FROM_TOP.items():
        text = text.replace(f"]({source}", f"]({page}")
    return re.sub(r"\]\(docs/", "](", text)


def on_config(config: Any) -> Any:
    """The two reference sections get an entry per page."""
    for section in config.nav:
        entries = section.get("Reference") if isinstance(section, dict) else None
        for entry in entries or ():
            if "Commands" in entry:
                entry["Commands"] = commands.navigation()
            if "Fields" in entry:
                entry["Fields"] = fields.navigation()
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files
