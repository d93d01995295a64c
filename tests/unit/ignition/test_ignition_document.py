import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.errors import HcpError
from hcp.ignition.document import data_url, document, file, merge, read_data_url, unit


@given(st.text())
def test_text_survives_a_data_url(text: str) -> None:
    assert read_data_url(data_url(text)) == text.encode()


@given(st.binary())
def test_bytes_survive_a_data_url(content: bytes) -> None:
    assert read_data_url(data_url(content)) == content


def test_a_later_part_wins_and_order_does_not_show() -> None:
    first = document(files=[file("/b", "1"), file("/a", "1")], units=[unit("x.service", "one")])
    second = document(files=[file("/b", "2")])
    merged = merge([first, second])
    assert [entry["path"] for entry in merged["storage"]["files"]] == ["/a", "/b"]
    assert read_data_url(merged["storage"]["files"][1]["contents"]["source"]) == b"2"


def test_dropins_and_keys_add_up() -> None:
    first = {
        "systemd": {"units": [{"name": "kubelet.service", "contents": "x", "dropins": [{"name": "10-a.conf"}]}]},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k1"]}]},
    }
    second = {
        "systemd": {"units": [{"name": "kubelet.service", "dropins": [{"name": "20-b.conf"}]}]},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k1", "k2"]}]},
    }
    merged = merge([first, second])
    kubelet = merged["systemd"]["units"][0]
    assert kubelet["contents"] == "x"
    assert [entry["name"] for entry in kubelet["dropins"]] == ["10-a.conf", "20-b.conf"]
    assert merged["passwd"]["users"][0]["sshAuthorizedKeys"] == ["k1", "k2"]


def test_only_data_urls_are_read() -> None:
    with pytest.raises(HcpError):
        read_data_url("https://example.com/x")
