"""Links between pages lead somewhere, headings included, also those of the top folder and to generated pages."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from tools.docs import hooks
from tools.docs.markdown import anchor

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GENERATED = {DOCS / path: text for path, text in hooks.generated().items()}
WRITTEN = {path: path.read_text() for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]}
PAGES = {**GENERATED, **WRITTEN}
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#{1,6} (.+)$", without_code(text), re.MULTILINE)}


def broken(path: Path, text: str) -> list[str]:
    found = []
    for link in LINK.findall(without_code(text)):
        where, _, heading = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        target = (path.parent / where).resolve() if where else path
        if target not in PAGES and not target.exists():
            found.append(f"{path.relative_to(ROOT)}: {link} is not there")
        elif heading and heading not in anchors(PAGES[target]):
            found.append(f"{path.relative_to(ROOT)}: {link} has no such heading")
    return found


def test_every_link_leads_somewhere() -> None:
    assert [problem for path, text in PAGES.items() for problem in broken(path, text)] == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = str(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    written = {path.relative_to(DOCS).as_posix() for path in WRITTEN if DOCS in path.parents}
    assert [page for page in sorted(written) if f"'{page}'" not in navigation] == []


def test_every_drawing_is_on_a_page() -> None:
    used = "".join(WRITTEN.values())
    assert [path.name for path in (DOCS / "images").iterdir() if f"images/{path.name}" not in used] == []
