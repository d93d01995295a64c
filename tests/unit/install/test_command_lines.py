"""No command line of ours ends in a traceback, and each refusal names the flag."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hcp.cli.main import main

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
