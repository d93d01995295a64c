import pytest

from hcp.errors import HcpError
from hcp.hostedcluster.releases import moved
from hcp.install import operator
from hcp.install.options import Options
from hcp.release import Release

DIGEST = "sha256:" + "0" * 64


def test_images_and_the_boot_disk_are_named_at_the_mirror() -> None:
    parts = {"etcd": f"q.example.com/team/etcd@{DIGEST}", "pause": f"other.example.com/pause@{DIGEST}"}
    given = Release("1.36.3", parts, f"q.example.com/team/node-disk@{DIGEST}", "amd64")
    found = moved(given, {"q.example.com/team": "m.example.com:5000/x", "q.example.com": "wrong.example.com"})
    assert found.components == {**parts, "etcd": f"m.example.com:5000/x/etcd@{DIGEST}"}
    assert found.boot_disk == f"m.example.com:5000/x/node-disk@{DIGEST}"
    assert moved(given, {}) is given
    assert moved(Release("1", {}, None, "amd64"), {"a": "b"}).boot_disk is None


def test_the_operator_is_told() -> None:
    made = operator.deployment(Options(registry_overrides=("q.example.com/a=m.example.com", "b.example.com=m:5000/b")))
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert "--registry-overrides=q.example.com/a=m.example.com,b.example.com=m:5000/b" in container["args"]


@pytest.mark.parametrize("text", ["q.example.com", "=m", "q=", "q.example.com/a:tag=m", "q a=m", "q=m@sha256:1"])
def test_what_is_no_override_is_refused(text: str) -> None:
    with pytest.raises(HcpError, match="is not source=mirror"):
        Options(registry_overrides=(text,))
