"""No value of any flag ends in a traceback, and every refusal names its flag."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.unit.cli_lines import render, run

from hcp.cli import tree
from hcp.cli.create.cluster.kubevirt import COMMAND
from hcp.cli.engine.command import UsageError, parse
from hcp.cli.main import load

FOLDER = Path(tempfile.mkdtemp())
# Pieces the grammars are made of, so that random text often comes close to something valid.
PIECES = ["a", "b-c", "1", "0", "-1", "9999999999", "Gi", "group", "count", "name", "key", "operator", "Exists", "true"]
PIECES += [
    "NoSchedule",
    "effect",
    "tolerationSeconds",
    "/",
    ",",
    "=",
    ":",
    " ",
    '"',
    "'",
    "[",
    "{",
    "\\",
    "\n",
    "10.0.0.0",
]
PIECES += ["/14", "fd01::", "h", "m", "s", ".", "é", "2030-01-31T12:00:00Z", "ReadWriteOnce", "--", "x" * 64, "\x00"]
NEARLY = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=20)
# Not those that ask a cluster or write files: `--render=false` rightly looks for a kubeconfig.
ELSEWHERE = ("render", "render-into", "release-stream", "generate-ssh", "name")
FLAGS = [flag.name for flag in COMMAND.flags if flag.name not in ELSEWHERE]


def check(words: list[str], flag: str, prog: str) -> None:
    result = render(FOLDER, *words, prog=prog)
    assert result.code in (0, 1)
    if result.code:
        lines = [line for line in result.err.splitlines() if line.startswith("Error: ")]
        assert len(lines) == 1
        assert f"--{flag}" in result.err
    else:
        assert list(yaml.safe_load_all(result.out))


@pytest.mark.parametrize("flag", FLAGS)
@settings(max_examples=40, deadline=None)
@given(value=NEARLY, prog=st.sampled_from(["hcp", "hypershift"]))
def test_any_value_of_any_flag(flag: str, value: str, prog: str) -> None:
    check([f"--{flag}={value}"], flag, prog)


@settings(max_examples=100, deadline=None)
@given(name=NEARLY)
def test_any_name(name: str) -> None:
    result = render(FOLDER, name=name)
    assert result.code in (0, 1)
    assert result.code == 0 or "--name" in result.err


MAPPING = st.builds("{}/{}{}".format, NEARLY, NEARLY, st.sampled_from(["", ",group=g", ",group", ",group=a=b", ",x=y"]))


@settings(max_examples=200, deadline=None)
@given(value=MAPPING, flag=st.sampled_from(["infra-storage-class-mapping", "infra-volumesnapshot-class-mapping"]))
def test_class_mappings(value: str, flag: str) -> None:
    check([f"--{flag}={value}"], flag, "hcp")


FIELD = st.sampled_from(["key", "value", "operator", "effect", "tolerationSeconds", "foo"])


@settings(max_examples=200, deadline=None)
@given(pairs=st.lists(st.tuples(FIELD, NEARLY), min_size=1, max_size=4))
def test_tolerations(pairs: list[tuple[str, str]]) -> None:
    check(["--toleration=" + ",".join(f"{key}={value}" for key, value in pairs)], "toleration", "hcp")


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=60) | NEARLY.map(lambda text: text.encode()))
@pytest.mark.parametrize("flag", ["pull-secret", "ssh-key", "additional-trust-bundle", "image-content-sources"])
def test_any_content_of_any_file(flag: str, content: bytes) -> None:
    file = FOLDER / "given"
    file.write_bytes(content)
    check([f"--{flag}={file}"], flag, "hcp")


@settings(max_examples=300, deadline=None)
@given(
    words=st.lists(
        st.sampled_from(["create", "cluster", "kubevirt", "get", "--name", "--render", "-n", "x", "--", "-h"]) | NEARLY
    )
)
def test_any_words_that_contact_nothing(words: list[str]) -> None:
    result = run(*words, "--no-such-flag")
    assert result.code in (0, 1)
    assert "Traceback" not in result.err


EVERY_FLAG = [(path, flag.name) for path in sorted(tree.COMMANDS) for flag in load(path).flags]


@settings(max_examples=1500, deadline=None)
@given(choice=st.sampled_from(EVERY_FLAG), value=NEARLY, prog=st.sampled_from(["hcp", "hypershift"]))
def test_any_value_of_every_command(choice: tuple[str, str], value: str, prog: str) -> None:
    path, flag = choice
    try:
        parse(prog, load(path), [f"--{flag}={value}"])
    except UsageError as error:
        command = load(path)
        if command.args or any(flag.required for flag in command.flags):
            return
        assert f"--{flag}" in str(error)
        assert error.cause or error.hint


@settings(max_examples=150, deadline=None)
@given(words=st.lists(NEARLY, max_size=3), path=st.sampled_from(sorted(tree.COMMANDS)))
def test_completion_never_fails(words: list[str], path: str) -> None:
    assert run("__complete", *path.split(" "), *words).code == 0


def test_every_flag_of_the_facts_is_there() -> None:
    expected = {
        "create kubeconfig": {"namespace", "name", "port-forward"},
        "destroy cluster kubevirt": {
            *(
                "name",
                "namespace",
                "kubeconfig",
                "cluster-grace-period",
                "destroy-cloud-resources",
                "infra-id",
                "force",
            ),
        },
        "destroy nodepool": {"name", "namespace"},
        "version": {"commit-only", "client-only", "namespace"},
    }
    for path, names in expected.items():
        assert names <= {flag.name for flag in load(path).flags}, path
