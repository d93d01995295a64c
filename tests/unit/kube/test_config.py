"""Reading kubeconfigs."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from hcp.errors import HcpError
from hcp.kube import ClusterConfig, config, load_config


def kubeconfig(**user: Any) -> dict[str, Any]:
    ca = base64.b64encode(b"CA").decode()
    return {
        "current-context": "one",
        "clusters": [
            {"name": "c1", "cluster": {"server": "https://one:6443/", "certificate-authority-data": ca}},
            {"name": "c2", "cluster": {"server": "https://two", "insecure-skip-tls-verify": True}},
        ],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c1", "user": "u", "namespace": "ns"}},
            {"name": "two", "context": {"cluster": "c2", "user": "u"}},
        ],
    }


def test_the_current_context_decides_unless_another_is_named() -> None:
    one = ClusterConfig.from_kubeconfig_dict(kubeconfig(token="t"))
    assert (one.server, one.ca_pem, one.namespace, one.auth.token) == ("https://one:6443", b"CA", "ns", "t")
    two = ClusterConfig.from_kubeconfig_dict(kubeconfig(), "two")
    assert (two.server, two.insecure, two.namespace) == ("https://two", True, "default")


def test_inline_data_beats_files_and_relative_files_count_from_the_kubeconfig(tmp_path: Path) -> None:
    key = base64.b64encode(b"KEY").decode()
    data = kubeconfig(**{"client-certificate": "crt", "client-key-data": key, "client-key": "key"})
    (tmp_path / "kc").write_text(yaml.safe_dump(data))
    auth = load_config(tmp_path / "kc").auth
    assert auth.cert_file == tmp_path / "crt"
    assert (auth.key_pem, auth.key_file) == (b"KEY", None)


def test_a_missing_context_names_the_ones_there_are() -> None:
    with pytest.raises(HcpError) as caught:
        ClusterConfig.from_kubeconfig_dict(kubeconfig(), "three")
    assert caught.value.sentence == 'The kubeconfig has no context named "three".'
    assert caught.value.hint == "It has: one, two."


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(token="first")
    first["contexts"] = first["contexts"][:1]
    (tmp_path / "a").write_text(yaml.safe_dump(first))
    (tmp_path / "b").write_text(yaml.safe_dump(kubeconfig(token="second") | {"current-context": "two"}))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'a'}:{tmp_path / 'missing'}:{tmp_path / 'b'}")
    assert load_config().context == "one"
    two = load_config(context="two")
    assert (two.server, two.auth.token) == ("https://two", "first")


def test_without_any_kubeconfig_the_hint_says_where_to_put_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(HcpError, match="no kubeconfig") as caught:
        load_config()
    assert "KUBECONFIG" in (caught.value.hint or "")
    with pytest.raises(HcpError, match="does not exist"):
        load_config(tmp_path / "nothing")


@pytest.mark.parametrize("text", ["", "[]", "a: [", "just text"])
def test_a_file_that_is_no_kubeconfig_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "kc").write_text(text)
    with pytest.raises(HcpError, match="kubeconfig"):
        load_config(tmp_path / "kc")


def test_a_pod_uses_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    monkeypatch.setattr(config, "SERVICE_ACCOUNT_DIR", tmp_path)
    with pytest.raises(HcpError):
        ClusterConfig.in_cluster(tmp_path)
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("hypershift\n")
    found = ClusterConfig.in_cluster(tmp_path)
    assert (found.server, found.namespace) == ("https://[fd00::1]:6443", "hypershift")
    assert found.auth.token_file == tmp_path / "token"
    assert load_config().context == "in-cluster"


def test_secrets_do_not_show_in_the_text_of_a_config() -> None:
    data = kubeconfig(password="geheim", username="u", **{"client-key-data": base64.b64encode(b"geheim").decode()})
    assert "geheim" not in repr(ClusterConfig.from_kubeconfig_dict(data))
