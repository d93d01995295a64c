"""Choosing a release out of a stream, and reading the supported versions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp import web

from hcp.cli.shared import release_default
from hcp.cli.shared.release_default import from_stream, newest, supported
from hcp.errors import HcpError
from hcp.kube import Client

TAGS = [
    {"name": "4.20.9", "pullSpec": "r:4.20.9"},
    {"name": "4.20.10", "pullSpec": "r:4.20.10"},
    {"name": "4.21.0-rc.1", "pullSpec": "r:4.21.0-rc.1"},
    {"name": "4.22.0", "pullSpec": "r:4.22.0"},
    {"name": "odd", "pullSpec": "r:odd"},
]


def test_newest_supported_final_release() -> None:
    assert newest(TAGS, ["4.20", "4.21"]) == "r:4.20.10"
    assert newest(TAGS, ["4.22", "4.20"]) == "r:4.22.0"
    assert newest(TAGS, ["4.1x"]) == ""
    assert newest([], ["4.20"]) == ""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "no key supported-versions"),
        ({"supported-versions": "nonsense"}, "versions"),
        ({"supported-versions": "[]"}, "versions"),
        ({"supported-versions": '{"versions": null}'}, "versions"),
    ],
)
def test_a_broken_config_map_is_explained(data: dict[str, str], words: str) -> None:
    with pytest.raises(HcpError, match=words):
        supported({"data": data})


def test_supported_versions() -> None:
    assert supported({"data": {"supported-versions": '{"versions": ["1.36", "1.35"]}'}}) == ["1.36", "1.35"]


class Versions:
    """A management cluster that only has the ConfigMap, if any."""

    def __init__(self, *names: str) -> None:
        data = {"supported-versions": '{"versions": ["4.21", "4.20"]}'}
        self.found = [{"metadata": {"name": name}, "data": data} for name in names]
        self.labels = ""

    async def list(self, _: Any, *, labels: str) -> list[dict[str, Any]]:
        self.labels = labels
        return self.found


@pytest.fixture
async def streams(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, web.Response]]:
    """A server of release streams on this machine: `arch/stream` to its answer."""
    answers: dict[str, web.Response] = {}

    async def answer(request: web.Request) -> web.Response:
        return answers.get(request.match_info["which"], web.Response(status=404))

    app = web.Application()
    app.router.add_get("/{which:.*}/tags", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    monkeypatch.setattr(release_default, "STREAMS", f"http://127.0.0.1:{port}/{{arch}}/{{stream}}/tags")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield answers
    await runner.cleanup()


@pytest.mark.parametrize(
    ("stream", "where"),
    [("4-stable", "amd64/4-stable"), ("4-stable-multi", "multi/4-stable-multi"), ("4-dev-s390x", "s390x/4-dev-s390x")],
)
async def test_a_stream_gives_its_newest_supported_release(
    streams: dict[str, web.Response], stream: str, where: str
) -> None:
    streams[where] = web.json_response({"name": stream, "tags": TAGS})
    cluster = Versions("other", "supported-versions")
    assert await from_stream(cast(Client, cluster), stream) == "r:4.20.10"
    assert cluster.labels == "hypershift.openshift.io/supported-versions=true"


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (web.Response(status=404), "404"),
        (web.Response(text="<html>"), "/amd64/4-stable/tags"),
        (web.json_response([1]), "/amd64/4-stable/tags"),
        (
            web.json_response({"tags": [{"name": "4.9.1", "pullSpec": "r:4.9.1"}]}),
            "no release that the operator supports",
        ),
        (web.json_response({}), "no release that the operator supports"),
    ],
    ids=["no such stream", "no JSON", "no object", "nothing supported", "no tags"],
)
async def test_a_stream_that_is_of_no_use_is_explained(
    streams: dict[str, web.Response], answer: web.Response, cause: str
) -> None:
    streams["amd64/4-stable"] = answer
    with pytest.raises(HcpError, match="the release stream '4-stable' cannot be looked up") as caught:
        await from_stream(cast(Client, Versions("supported-versions")), "4-stable")
    assert cause in str(caught.value)
    assert "--release-image" in (caught.value.hint or "")


async def test_a_stream_needs_the_operators_versions(streams: dict[str, web.Response]) -> None:
    with pytest.raises(HcpError, match="there is no ConfigMap supported-versions"):
        await from_stream(cast(Client, Versions()), "4-stable")
