"""Finding commands, help, and what is said about words that are no command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.unit.cli_lines import render, run

from hcp.cli import tree
from hcp.cli.main import find, load


def test_no_command_prints_help_and_fails() -> None:
    result = run()
    assert result.code == 1
    assert "create cluster kubevirt" in result.out


def test_a_group_alone_prints_its_help() -> None:
    result = run("create", "cluster")
    assert result.code == 0
    assert "kubevirt" in result.out


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"], ["create", "--help"], ["help", "create", "cluster"]])
def test_help_of_groups(words: list[str]) -> None:
    result = run(*words)
    assert result.code == 0
    assert result.out.startswith(("Hosted", "Create"))


def test_mistyped_commands_are_errors() -> None:
    result = run("create", "cluster", "kubvirt", "--name", "x")
    assert result.code == 1
    assert 'unknown command "kubvirt" for "hcp create cluster"' in result.err
    assert "did you mean hcp create cluster kubevirt?" in result.err
    assert run("crate").code == 1


def test_flags_may_stand_before_the_last_word() -> None:
    path, early, rest = find("hcp", ["create", "cluster", "--name", "x", "--render", "kubevirt", "--fips"])
    assert path == "create cluster kubevirt"
    assert early == ["--name", "x", "--render"]
    assert rest == ["--fips"]


def test_unknown_flags_before_the_last_word() -> None:
    result = run("create", "cluster", "--nmae", "x", "kubevirt")
    assert result.code == 1
    assert "unknown flag: --nmae" in result.err
    assert "--name" in result.err


def test_every_command_of_this_folder_has_a_table_that_fits_its_path() -> None:
    for path, (module, short) in tree.COMMANDS.items():
        assert short, path
        command = load(path)
        assert command.path == path, module
        assert command.short, path
        names = [flag.name for flag in command.flags]
        assert len(names) == len(set(names)), f"{path} has a flag twice"
        shorts = [flag.short for flag in command.flags if flag.short]
        assert len(shorts) == len(set(shorts)), f"{path} has a shorthand twice"
        assert "h" not in shorts, path


def test_every_group_has_words() -> None:
    for path in tree.COMMANDS:
        parts = path.split(" ")
        for depth in range(1, len(parts)):
            parent = " ".join(parts[:depth])
            assert parent in tree.GROUPS or parent in tree.COMMANDS, parent


@pytest.mark.parametrize("prog", ["hcp", "hypershift"])
def test_help_of_every_command_names_every_flag(prog: str) -> None:
    for path in tree.COMMANDS:
        command = load(path)
        result = run(*path.split(" "), "--help", prog=prog)
        assert result.code == 0
        assert f"{prog} {path}" in result.out
        for flag in command.flags:
            if not flag.hidden and flag.only in ("", prog):
                assert f"--{flag.name}" in result.out, path


def test_every_command_has_examples_that_name_it() -> None:
    for path in tree.COMMANDS:
        command = load(path)
        assert command.examples, path
        for title, text in command.examples:
            assert title, path
            assert f"{{prog}} {path}" in text, path


def test_help_is_aligned() -> None:
    shown = run("wait", "cluster", "--help").out.splitlines()
    general = shown[shown.index("General flags:") + 1 :]
    assert general[0].index("say more") == general[1].index("show this help")


def test_charts_are_not_written() -> None:
    result = run("install", "helm")
    assert result.code == 1
    assert 'unexpected argument "helm"' in result.err


def test_errors_are_printed_once_on_stderr() -> None:
    result = run("create", "cluster", "kubevirt")
    assert result.code == 1
    assert result.out == ""
    assert result.err.splitlines() == [
        "Error: --name is required",
        "Hint: --name takes the name of the hosted cluster, for example demo",
    ]


def test_interrupts_end_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("hcp.cli.main.dispatch", interrupted)
    result = run("version")
    assert result.code == 130
    assert result.err == "\nAborted\n"


def test_flags_without_effect_say_so(tmp_path: Path) -> None:

    result = render(tmp_path, "--base-domain-prefix", "x")
    assert result.code == 0
    assert "--base-domain-prefix has no effect: the cluster" in result.err
