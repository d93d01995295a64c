"""Which proxy is asked, for whom none is, and that no kubeconfig out of a Secret names one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.http_proxy import Proxies, usable, without_password
from hcp.kube import load_config, untrusted_kubeconfig
from hcp.kube.config import DIRECT
from hcp.kube.errors import proxy_refused

PROXY = "http://me:s%40cret@proxy.example.com:3128"
SERVER = "https://api.example.com:6443"


@pytest.mark.parametrize(
    ("entry", "url", "direct"),
    [
        ("example.com", "https://example.com", True),
        ("example.com", "https://api.example.com", True),
        ("example.com", "https://notexample.com", False),
        (".example.com", "https://api.example.com", True),
        (".example.com", "https://example.com", False),
        ("*.example.com", "https://a.b.example.com", True),
        ("EXAMPLE.com", "https://Api.example.COM.", True),
        ("api.example.com:6443", "https://api.example.com:6443", True),
        ("api.example.com:6443", "https://api.example.com", False),
        ("10.0.0.0/8", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.0.0.0/8", "https://ten.example.com", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("10.1.2.3:443", "https://10.1.2.3", True),
        ("2001:db8::1", "https://[2001:db8::1]:6443", True),
        ("[2001:db8::1]:6443", "https://[2001:db8::1]:6443", True),
        ("2001:db8::/32", "https://[2001:db8::7]", True),
        ("nonsense/x", "https://10.1.2.3", False),
        ("*", "https://anything", True),
        ("", "https://localhost:6443", True),
        ("", "https://127.0.0.1:6443", True),
        ("", "https://[::1]:6443", True),
        ("", "https://api.example.com", False),
    ],
)
def test_who_is_asked_directly(entry: str, url: str, direct: bool) -> None:
    proxies = Proxies.of({"HTTPS_PROXY": PROXY, "NO_PROXY": f"other.test, {entry}"})
    assert proxies.for_url(url) == (None if direct else PROXY)


def test_each_scheme_has_its_proxy_and_small_letters_count() -> None:
    proxies = Proxies.of({"https_proxy": "proxy:3128", "HTTP_PROXY": ""})
    assert proxies.for_url("https://a.test") == "http://proxy:3128" and proxies.for_url("http://a.test") is None
    assert not Proxies.of({"NO_PROXY": "x"}) and "s%40cret" not in repr(Proxies.of({"HTTPS_PROXY": PROXY}))


@pytest.mark.parametrize(
    "bad", ["socks5://p:1080", "https://p:3128", "http://", "http://p:99999", "http://a b", "http://p:0"]
)
def test_other_ways_are_refused_by_name(bad: str) -> None:
    with pytest.raises(HcpError, match="proxy-url"):
        usable(bad, "The proxy-url")


def test_no_error_shows_the_password() -> None:
    assert without_password(PROXY) == "http://proxy.example.com:3128"
    error = proxy_refused(SERVER, PROXY, 407, "Proxy Authentication Required")
    assert "s%40cret" not in f"{error} {error.cause} {error.hint}" and "user:password" in str(error.hint)


def kubeconfig(folder: Path, **cluster: object) -> Path:
    path = folder / "kubeconfig"
    data = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": SERVER, **cluster}}],
        "users": [{"name": "x", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(data))
    return path


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


def test_a_persons_kubeconfig_comes_before_the_environment(tmp_path: Path, no_environment: pytest.MonkeyPatch) -> None:
    assert load_config(kubeconfig(tmp_path)).proxy is None
    assert load_config(kubeconfig(tmp_path, **{"proxy-url": PROXY})).proxy == PROXY
    no_environment.setenv("HTTPS_PROXY", "http://other:1")
    assert load_config(kubeconfig(tmp_path)).proxy == "http://other:1"
    assert load_config(kubeconfig(tmp_path, **{"proxy-url": PROXY})).proxy == PROXY
    assert load_config(kubeconfig(tmp_path, extensions=[{"name": DIRECT, "extension": {}}])).proxy is None
    no_environment.setenv("NO_PROXY", ".example.com")
    assert load_config(kubeconfig(tmp_path)).proxy is None
    assert "s%40cret" not in repr(load_config(kubeconfig(tmp_path, **{"proxy-url": PROXY})))


def test_a_kubeconfig_out_of_a_secret_names_no_proxy(tmp_path: Path, no_environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(untrusted_kubeconfig.RefusedKubeconfig, match="proxy-url"):
        untrusted_kubeconfig.load(kubeconfig(tmp_path, **{"proxy-url": PROXY}).read_bytes())
    no_environment.setenv("HTTPS_PROXY", PROXY)
    assert untrusted_kubeconfig.load(kubeconfig(tmp_path).read_bytes()).proxy is None
