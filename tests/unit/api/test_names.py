"""Names: what is accepted, what is refused, and that generated names are always usable."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.api import names
from hcp.errors import HcpError


@given(st.text(max_size=80))
def test_infra_id_is_short_and_ends_in_a_random_suffix(name: str) -> None:
    infra_id = names.new_infra_id(name)
    assert len(infra_id) <= 27
    assert infra_id[-6] == "-"
    assert "--" not in infra_id[:-6]


@given(st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_infra_id_of_a_valid_name_is_a_valid_label(name: str) -> None:
    assert names.label_problem(names.new_infra_id(name)) is None


def test_infra_id_keeps_the_start_of_the_name() -> None:
    assert names.new_infra_id("a.b__c-and-a-very-long-tail").startswith("a-b-c-and-a-very-long-")


def test_control_plane_namespace_replaces_dots() -> None:
    assert names.control_plane_namespace("clusters", "a.b") == "clusters-a-b"


@pytest.mark.parametrize(
    ("namespace", "name", "words"),
    [
        ("clusters", "clusters", "reserved"),
        ("clusters", "a.b", "dot"),
        ("clusters", "UPPER", "RFC1123"),
        ("clusters", "-a", "RFC1123"),
        ("clusters", "", "RFC1123"),
        ("clusters", "x" * 64, "64 characters"),
        ("clusters", "x" * 55, "control plane namespace"),
    ],
)
def test_bad_cluster_names_are_refused_with_the_rule(namespace: str, name: str, words: str) -> None:
    with pytest.raises(HcpError, match=words):
        names.check_cluster_name(namespace, name)


def test_the_longest_allowed_name_passes() -> None:
    names.check_cluster_name("clusters", "x" * 54)


@given(st.text(max_size=70), st.text(max_size=70))
def test_checking_never_crashes(namespace: str, name: str) -> None:
    problems = names.cluster_name_problems(namespace, name)
    assert all(isinstance(problem, str) for problem in problems)


@given(st.text(max_size=300))
def test_subdomain_check_agrees_with_the_label_check(value: str) -> None:
    if names.label_problem(value) is None:
        assert names.subdomain_problem(value) is None


def test_importing_names_loads_nothing_of_weight() -> None:
    code = "import sys, hcp; before = set(sys.modules); import hcp.api.names; print(sorted(set(sys.modules) - before))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = out.strip()
    assert "'re'" not in loaded
    assert "dataclasses" not in loaded
