"""Holds a built site to what mkdocs does not check: nothing comes from the internet, and every link leads somewhere.

python -m tools.docs.check build/site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Elements that make a browser fetch something, and the attribute that says what.
FETCHED = {
    "audio": "src",
    "embed": "src",
    "iframe": "src",
    "image": "href",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "use": "href",
    "video": "src",
}
STYLE_URL = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")


class Page(HTMLParser):
    """What one page fetches, links to and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        # A link that only names another address of the page fetches nothing.
        if tag in FETCHED and found.get(FETCHED[tag]) and found.get("rel") not in ("canonical", "prev", "next"):
            self.fetched.append(found[FETCHED[tag]])


def problems(site: Path) -> list[str]:
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = [f"{path.relative_to(site)}: {problem}" for path in pages for problem in _of(site, path, pages)]
    for path in sorted(site.rglob("*.css")) + sorted(site.rglob("*.svg")):
        found += [f"{path.relative_to(site)}: fetches {url}" for url in STYLE_URL.findall(path.read_text())]
    return found


def _of(site: Path, path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    page = pages[path]
    for url in page.fetched:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") or parts.netloc:
            yield f"fetches {url} from the internet"
        elif parts.path and parts.scheme != "data" and not _target(site, path, parts.path).exists():
            yield f"needs {url}, which is not there"
    for url in page.links:
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        target = _target(site, path, parts.path) if parts.path else path
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            yield f"links to {url}, which is not there"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"links to {url}, which has no such heading"


def _target(site: Path, path: Path, link: str) -> Path:
    """The file behind a link; one that begins with a slash counts from the top, as on the page for wrong addresses."""
    return (site / unquote(link).lstrip("/") if link.startswith("/") else path.parent / unquote(link)).resolve()


def main(words: list[str]) -> int:
    site = Path(words[0]).resolve()
    found = problems(site)
    for problem in found:
        print(problem, file=sys.stderr)
    pages = sum(1 for _ in site.rglob("*.html"))
    if not pages:
        print(f"{site} has no pages", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(f"{pages} pages, {size / 1e6:.1f} MB, {len(found)} problems: {site}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
