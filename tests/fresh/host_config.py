"""What the room takes over from the machine: how package registries are reached, and nothing else.

Only names are written here; hosts, proxies and certificates are the machine's own.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hcp.payload.rootfs_mirror import sources

_PREFIXES = ("PIP_", "GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOAUTH")
_NAMES = {
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "ftp_proxy"),
    *("ssl_cert_file", "ssl_cert_dir", "requests_ca_bundle", "curl_ca_bundle", "git_ssl_cainfo"),
}
_HOME_FILES = (".config/pip", ".pip", ".config/go/env", ".netrc")
_FILES = ("/etc/pip.conf", "/etc/resolv.conf")
_CERTIFICATES = "/etc/ssl/certs"
_BUNDLE = f"{_CERTIFICATES}/ca-certificates.crt"


def passed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables by which pip, Go, apt and git find their registries."""
    return {name: value for name, value in environment.items() if name.startswith(_PREFIXES) or name.lower() in _NAMES}


def passed_paths(environment: Mapping[str, str]) -> dict[Path, str]:
    """Files and folders of the machine that these variables name → where the room shows them, read-only."""
    values = passed_environment(environment).values()
    named = [value for value in values if value.startswith("/") and not value.startswith(_CERTIFICATES)]
    return {Path(value).resolve(): value for value in named if Path(value).exists()}


def copy_settings(root: Path, home: Path) -> None:
    """Settings of pip and Go, and how names are resolved."""
    places = {Path(name): root / name.lstrip("/") for name in _FILES}
    places |= {home / name: root / "root" / name for name in _HOME_FILES}
    for source, target in places.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.is_file():
            target.unlink(missing_ok=True)
            shutil.copyfile(source, target)


def write_apt(root: Path, suite: str) -> None:
    """The machine's archive, but the room's own suite; proxies, certificates and logins as the machine has them."""
    apt = root / "etc" / "apt"
    lines = sources(suite)
    if lines:
        (apt / "sources.list").write_text("\n".join(lines) + "\n")
    if shutil.which("apt-config"):
        done = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False)
        (apt / "apt.conf.d" / "90machine").write_text(done.stdout)
    for name in ("auth.conf", "auth.conf.d"):
        source = Path("/etc/apt") / name
        if source.is_dir():
            shutil.copytree(source, apt / name, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copyfile(source, apt / name)
    (root / "var/lib/apt/lists/partial").mkdir(parents=True, exist_ok=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True, exist_ok=True)


def write_certificates(root: Path) -> None:
    """The authorities the machine trusts: behind a proxy that opens TLS, Debian's own are not enough."""
    bundle = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    candidates = [bundle, _BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt"]
    found = next((path for path in candidates if path and Path(path).is_file()), None)
    if found:
        shutil.copyfile(found, root / _BUNDLE.lstrip("/"))
