"""Conditions, metrics, health and logs."""

from __future__ import annotations

import asyncio
import io
import json
import logging

import pytest

from hcp.runtime import conditions, metrics, requests, serve_health
from hcp.runtime.logs import setup_logging


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = conditions.set_condition([], "Ready", False, "Starting", "wait", 1, at="T1")
    again = conditions.set_condition(first, "Ready", "False", "Failing", "still", 2, at="T2")
    assert again == [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Failing",
            "message": "still",
            "observedGeneration": 2,
            "lastTransitionTime": "T1",
        }
    ]
    turned = conditions.set_condition(again, "Ready", True, "Up", "", 2, at="T3")
    assert turned[0]["lastTransitionTime"] == "T3"
    assert first[0]["reason"] == "Starting"
    assert conditions.is_true(turned, "Ready")
    assert conditions.is_false(again, "Ready")
    assert not conditions.is_true(None, "Ready")
    both = conditions.set_condition(turned, "Other", "Unknown", "R", at="T4")
    assert [c["type"] for c in both] == ["Ready", "Other"]
    assert [c["type"] for c in conditions.remove_condition(both, "Ready")] == ["Other"]


def test_metrics_are_written_as_prometheus_reads_them() -> None:
    registry = metrics.Registry()
    counter = metrics.Counter("c_total", "Counts.\nTwo lines.", ["who"], registry)
    gauge = metrics.Gauge("g", "Level.", registry=registry)
    histogram = metrics.Histogram("h_seconds", "Times.", ["who"], registry, buckets=(0.1, 1))
    counter.inc(who='a"b\\c\nd')
    gauge.set(2.5)
    gauge.dec()
    for value in (0.05, 0.1, 0.5, 7):
        histogram.observe(value, who="x")
    assert registry.render().splitlines() == [
        "# HELP c_total Counts.\\nTwo lines.",
        "# TYPE c_total counter",
        'c_total{who="a\\"b\\\\c\\nd"} 1',
        "# HELP g Level.",
        "# TYPE g gauge",
        "g 1.5",
        "# HELP h_seconds Times.",
        "# TYPE h_seconds histogram",
        'h_seconds_bucket{who="x",le="0.1"} 2',
        'h_seconds_bucket{who="x",le="1"} 3',
        'h_seconds_bucket{who="x",le="+Inf"} 4',
        'h_seconds_sum{who="x"} 7.65',
        'h_seconds_count{who="x"} 4',
    ]
    histogram.remove(who="x")
    assert histogram.count(who="x") == 0
    with pytest.raises(ValueError, match="exactly the labels who"):
        counter.inc()
    with pytest.raises(ValueError, match="exists already"):
        metrics.Gauge("g", "Again.", registry=registry)


async def ask(port: int, request: bytes) -> tuple[bytes, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    raw = await reader.read()
    writer.close()
    head, _, body = raw.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], body


async def test_health_answers_probes_and_scrapes() -> None:
    ready = False
    server = await serve_health(0, lambda: ready, host="127.0.0.1")
    try:
        get = b"GET %s HTTP/1.1\r\n\r\n"
        assert await ask(server.port, get % b"/healthz") == (b"HTTP/1.1 200 OK", b"ok\n")
        assert (await ask(server.port, get % b"/readyz?verbose"))[0] == b"HTTP/1.1 503 Service Unavailable"
        ready = True
        assert (await ask(server.port, get % b"/readyz"))[0] == b"HTTP/1.1 200 OK"
        assert b"# TYPE hcp_reconcile_total counter" in (await ask(server.port, get % b"/metrics"))[1]
        assert (await ask(server.port, get % b"/nothing"))[0] == b"HTTP/1.1 404 Not Found"
        assert (await ask(server.port, b"POST / HTTP/1.1\r\n\r\n"))[0] == b"HTTP/1.1 405 Method Not Allowed"
    finally:
        await server.close()


def test_log_lines_carry_their_facts() -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    out = io.StringIO()
    try:
        setup_logging("info", form="json", stream=out)
        logging.getLogger("hcp.test").info("pass done", extra={"key": "ns/a", "none": None})
        logging.getLogger("hcp.test").debug("not shown")
        try:
            raise ValueError("bug")
        except ValueError:
            logging.getLogger("hcp.test").exception("it broke")
        text = io.StringIO()
        setup_logging("info", form="text", stream=text)
        logging.getLogger("hcp.test").warning("hm", extra={"key": "ns/a"})
    finally:
        root.handlers, root.level = before
    first, second = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {k: first[k] for k in ("level", "logger", "msg", "key")} == {
        "level": "info",
        "logger": "hcp.test",
        "msg": "pass done",
        "key": "ns/a",
    }
    assert "none" not in first
    assert "ValueError: bug" in second["trace"]
    assert text.getvalue().endswith("warn hm key=ns/a\n")


def test_requests_are_counted_and_writes_told_apart() -> None:
    before = requests.writes()
    requests.observe_request("get", "pods", 200, 0.1)
    requests.observe_request("watch", "pods", 200, 300.0)
    requests.observe_request("patch", "pods", 200, 0.1)
    requests.observe_request("create", "events", 409, 0.1)
    assert requests.writes() == before + 2
    assert requests.DURATION.count(verb="watch") == 0
