"""The generated reference holds every command, flag and field; a built site needs no internet and has no dead ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.docs import check, commands, fields

from hcp.cli import tree
from hcp.cli.main import load


def test_every_command_has_a_heading_and_a_line_in_the_index() -> None:
    pages = commands.pages()
    index = pages[commands.INDEX]
    for path in tree.COMMANDS:
        page = pages[f"{commands.FOLDER}/{path.partition(' ')[0]}.md"]
        assert f"\n## hcp {path}\n" in page
        assert f"[`hcp {path}`]" in index


@pytest.mark.parametrize("path", sorted(tree.COMMANDS))
def test_every_flag_is_there_with_its_meaning(path: str) -> None:
    page = commands.pages()[f"{commands.FOLDER}/{path.partition(' ')[0]}.md"]
    section = page.partition(f"\n## hcp {path}\n")[2].partition("\n## ")[0]
    for flag in load(path).flags:
        shown = f"| `--{flag.name}" in section
        assert shown is not flag.hidden, flag.name
        assert flag.hidden or flag.help, flag.name


def test_every_page_is_in_the_navigation() -> None:
    for module in (commands, fields):
        assert {page for entry in module.navigation() for page in entry.values()} == set(module.pages())


@pytest.mark.parametrize("kind", sorted(fields.kinds()))
def test_every_field_is_on_the_page_of_its_kind(kind: str) -> None:
    page = fields.pages()[fields.page_of(kind)].replace("<wbr>", "")
    for part in ("spec", "status"):
        for field in fields.fields(fields.schema_of(fields.kinds()[kind], part)):
            assert f"| <code>{field.path}</code>" in page


def site(folder: Path, body: str) -> Path:
    (folder / "index.html").write_text(f"<html><body><h2 id='there'>x</h2>{body}</body></html>")
    (folder / "other.html").write_text("<html><body><a id='here'></a></body></html>")
    return folder


@pytest.mark.parametrize(
    "body",
    [
        "<a href='other.html#here'>x</a><a href='#there'>y</a><a href='https://example.com/'>z</a>",
        "<a href='/other.html'>x</a><img src='index.html'>",
    ],
)
def test_a_good_site_has_no_problems(tmp_path: Path, body: str) -> None:
    assert check.problems(site(tmp_path, body)) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<a href='nowhere.html'>x</a>", "is not there"),
        ("<a href='other.html#nothing'>x</a>", "no such heading"),
        ("<script src='https://cdn.example.com/x.js'></script>", "from the internet"),
        ("<link rel='stylesheet' href='//fonts.example.com/css'>", "from the internet"),
        ("<img src='missing.png'>", "is not there"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, body: str, said: str) -> None:
    (problem,) = check.problems(site(tmp_path, body))
    assert said in problem


def test_style_sheets_and_drawings_fetch_nothing(tmp_path: Path) -> None:
    site(tmp_path, "")
    (tmp_path / "a.css").write_text("@import 'https://fonts.example.com/x.css';")
    (tmp_path / "b.svg").write_text("<svg><style>text { src: url(https://example.com/f.woff) }</style></svg>")
    assert len(check.problems(tmp_path)) == 2
