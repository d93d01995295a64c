"""No command line of ours ends in a traceback, and each refusal names the flag."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hcp.cli.main import main
from hcp.install.options import DEFAULT_IMAGE, usual_pull_policy

QUIET = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
TEXT = st.text(max_size=40)


@QUIET
@given(
    flag=st.sampled_from(
        [
            "image",
            "router-domain",
            "namespace",
            "default-release-image",
            "image-pull-policy",
            "limit-crd-install",
            "additional-operator-env-vars",
            "replicas",
            "platform-monitoring",
            "pull-secret",
            "additional-trust-bundle",
            "cert-rotation-scale",
        ]
    ),
    value=TEXT,
)
def test_install_render(capsys: pytest.CaptureFixture[str], flag: str, value: str) -> None:
    code = main("hcp", ["install", "render", "--outputs=resources", "--router", f"--{flag}={value}"])
    said = capsys.readouterr()
    assert code in (0, 1)
    if code:
        assert said.out == ""
        assert flag in said.err or "image" in said.err


@QUIET
@given(value=TEXT)
def test_rbac(capsys: pytest.CaptureFixture[str], value: str) -> None:
    code = main("hcp", ["rbac", "external-infra", f"--infra-namespace={value}"])
    said = capsys.readouterr()
    assert code in (0, 1)
    if code:
        assert "infra-namespace" in said.err


@QUIET
@given(value=TEXT)
def test_doctor_ranges(capsys: pytest.CaptureFixture[str], value: str) -> None:
    code = main("hcp", ["doctor", "--kubeconfig=/does/not/exist", f"--cluster-cidr={value}"])
    assert code == 1
    assert "Error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        (DEFAULT_IMAGE, "Always"),
        ("registry.example.com:5000/hcp", "Always"),
        ("registry.example.com:5000/hcp:latest", "Always"),
        ("registry.example.com/hcp:1.0", "IfNotPresent"),
        (f"registry.example.com/hcp:latest@sha256:{'0' * 64}", "IfNotPresent"),
    ],
)
def test_a_tag_that_moves_is_pulled_again(image: str, policy: str) -> None:
    assert usual_pull_policy(image) == policy


def test_a_pull_policy_that_was_asked_for_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["install", "render", "--outputs=resources", "--image=r.example.com/x:latest"]
    assert main("hcp", [*words, "--image-pull-policy=IfNotPresent"]) == 0
    assert "imagePullPolicy: Always" not in capsys.readouterr().out
    assert main("hcp", words) == 0
    assert "imagePullPolicy: Always" in capsys.readouterr().out


def test_rendering_without_an_image_says_who_serves_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("hcp", ["install", "render", "--outputs=resources"]) == 0
    assert "only embedded clusters serve" in capsys.readouterr().err
