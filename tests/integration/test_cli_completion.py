"""Completion scripts in the shells they are for."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.cli_runner import Runner

from hcp import payload

EXPECTED = ["cluster config-drive kubeconfig nodepool", "--qos-class", "Burstable Guaranteed"]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Completion asks no cluster."""
    made = Runner(Path("/nowhere"), tmp_path)
    made.env["PATH"] = f"{Path(sys.executable).parent}:{made.env['PATH']}"
    return made


@pytest.fixture(scope="session")
def shells() -> Path:
    """zsh and fish out of Debian packages, the same everywhere."""
    return payload.ensure(["test-shells"])["test-shells"]


def script(runner: Runner, name: str, file: str, prog: str = "hcp") -> Path:
    path = runner.folder / file
    path.write_text(runner.ok("completion", name, prog=prog).out)
    return path


def lines(runner: Runner, *command: str) -> list[str]:
    done = subprocess.run(command, env=runner.env, cwd=runner.folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_each_name_has_its_script(runner: Runner, name: str) -> None:
    assert "hcp __complete" in runner.ok("completion", name).out
    assert "hypershift __complete" in runner.ok("completion", name, prog="hypershift").out
    assert "@prog@" not in runner.ok("completion", name).out


def test_other_shells_are_refused(runner: Runner) -> None:
    assert "allowed: bash, zsh, fish" in runner.fails("completion", "tcsh")


def test_bash_completes(runner: Runner) -> None:
    program = f"""
source {script(runner, "bash", "completion.bash")}
try() {{
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${{#COMP_LINE}}
    _hcp_complete; echo "${{COMPREPLY[*]}}"
}}
IFS=' '
try hcp create ''
try hcp create cluster kubevirt --qos
try hcp create cluster kubevirt --qos-class ''
try hcp create cluster kubevirt --qos-class = G
"""
    assert lines(runner, "bash", "--norc", "-c", program) == [*EXPECTED, "Guaranteed"]


def test_zsh_completes_when_sourced(runner: Runner, shells: Path) -> None:
    file = script(runner, "zsh", "completion.zsh")
    shown = typed_into_zsh(
        runner, shells, f"autoload -Uz compinit; compinit -u -d dump; source {file}", "hcp create clu\t"
    )
    assert "R:hcp create cluster\r" in shown, shown


def test_zsh_completes_at_the_first_try_from_its_folder(runner: Runner, shells: Path) -> None:
    script(runner, "zsh", "_hypershift", prog="hypershift")
    setup = f"fpath=({runner.folder} $fpath); autoload -Uz compinit; compinit -u -d dump"
    shown = typed_into_zsh(runner, shells, setup, "hypershift create cluster kubevirt --qos-cl\tGua\t")
    assert "R:hypershift create cluster kubevirt --qos-class Guaranteed" in shown, shown


def typed_into_zsh(runner: Runner, shells: Path, setup: str, keys: str) -> str:
    """What an interactive zsh makes of the keys: the line is turned into an echo and run."""
    ours, theirs = pty.openpty()
    functions = shells / "share" / "zsh"
    folders = [functions, *(path for path in functions.rglob("*") if path.is_dir())]
    env = runner.env | {"TERM": "dumb", "PS1": "ready> ", "FPATH": ":".join(map(str, folders))}
    process = subprocess.Popen(
        [shells / "bin" / "zsh", "-f", "-i"], env=env, cwd=runner.folder, stdin=theirs, stdout=theirs
    )
    os.close(theirs)
    try:
        os.write(ours, f"unsetopt zle_bracketed_paste; bindkey -e; {setup}; echo set''up\n".encode())
        _read_until(ours, "setup\r\n")
        os.write(ours, keys.encode() + b"\x01echo R:\n")
        return _read_until(ours, "\nR:", then="\n")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read_until(terminal: int, mark: str, then: str = "") -> str:
    text, end = "", time.monotonic() + 300
    while mark not in text or (then and then not in text.partition(mark)[2]):
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
        assert ready, f"no {mark!r} in {text!r}"
        text += os.read(terminal, 4096).decode(errors="replace")
    return text


def test_fish_completes(runner: Runner, shells: Path) -> None:
    (runner.folder / "secret.json").touch()
    program = f"""
source {script(runner, "fish", "hcp.fish")}
function try
    echo (complete -C $argv[1])
end
try 'hcp create '
try 'hcp create cluster kubevirt --qos'
try 'hcp create cluster kubevirt --qos-class '
try 'hcp create cluster kubevirt --qos-class=G'
try 'hcp create cluster kubevirt --pull-secret sec'
"""
    assert lines(runner, str(shells / "bin" / "fish"), "--no-config", "-c", program) == [
        *EXPECTED,
        "--qos-class=Guaranteed",
        "secret.json",
    ]
