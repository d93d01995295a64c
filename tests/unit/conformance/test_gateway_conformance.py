"""What the Gateway API's tests are given, and what is read from what they say."""

from __future__ import annotations

from pathlib import Path

from conformance import gateway_objects, gateway_report

from hcp.payload.images.gateway import gateway_images
from hcp.payload.versions import component_table, recipe_dir
from hcp.router.gateway.listeners import CONTROLLER
from hcp.router.gateway.status import FEATURES

KNOWN = Path(gateway_report.__file__).with_name("gateway-known.tsv")
_LOG = """\
=== RUN   TestConformance/Good
    conformance.go:80: 2026: Running Good, relying on the following features: Gateway-standard, HTTPRoute-standard
=== RUN   TestConformance/Good/part
=== RUN   TestConformance/Bad
    conformance.go:80: 2026: Running Bad, relying on the following features: Gateway-standard, Retry-experimental
=== RUN   TestConformance/Bad/one_part
        Error:      Received unexpected error:
        Messages:   error waiting for HTTPRoute
=== RUN   TestConformance/Away
    conformance.go:62: Skipping Away: suite does not support GRPCRoute
=== RUN   TestConformance/Passes
    conformance.go:80: 2026: Running Passes, relying on the following features: Gateway-standard, TLSRoute-standard
--- FAIL: TestConformance (63.00s)
    --- PASS: TestConformance/Good (1.50s)
        --- PASS: TestConformance/Good/part (1.00s)
    --- FAIL: TestConformance/Bad (60.00s)
        --- FAIL: TestConformance/Bad/one_part (60.00s)
    --- SKIP: TestConformance/Away (0.00s)
    --- PASS: TestConformance/Passes (1.00s)
"""


def test_states_features_and_reasons_are_read() -> None:
    found = {one.name: one for one in gateway_report.read(_LOG)}
    assert {name: one.state for name, one in found.items()} == {
        "Good": "passed",
        "Bad": "failed",
        "Away": "skipped",
        "Passes": "passed",
    }
    assert [found[name].feature for name in ("Good", "Bad", "Passes")] == ["HTTPRoute", "Retry", "TLSRoute"]
    assert "error waiting for HTTPRoute" in found["Bad"].why
    assert "one part" in found["Bad"].why
    assert found["Away"].why == ("suite does not support GRPCRoute",)


def test_a_test_without_an_end_failed() -> None:
    (one,) = gateway_report.read("=== RUN   TestConformance/Cut\n")
    assert one.state == "failed"


def test_only_what_is_not_known_is_a_surprise() -> None:
    tests = gateway_report.read(_LOG)
    assert gateway_report.surprises(tests, {"Bad": "why"}) == []
    assert gateway_report.surprises(tests, {}) == ["failed, and should pass: Bad"]
    said = gateway_report.surprises(tests, {"Bad": "why", "Good": "was so"})
    assert said == ["passed, so it is no known failure any more: Good"]
    text = gateway_report.render(tests, {"Bad": "why"})
    assert "known: why" in text
    assert "HTTPRoute: 1 of 1" in text
    assert "2 passed, 1 failed, 1 skipped" in text


def test_every_known_failure_has_a_reason() -> None:
    known = gateway_report.read_known(KNOWN.read_text())
    assert known
    assert all(known.values())


def test_the_tests_are_of_the_version_of_the_definitions() -> None:
    suite, definitions = (component_table(name) for name in ("gateway-conformance", "gateway-definitions"))
    assert suite["version"] == definitions["version"]
    modules = (recipe_dir("gateway-conformance") / "go.mod").read_text()
    assert f"sigs.k8s.io/gateway-api v{suite['version']}" in modules


def test_every_image_that_the_tests_ask_for_is_one_of_ours() -> None:
    images = {"gateway-conformance": "r/suite@1", "echo-basic": "r/echo@1", "coredns": "r/dns@1"}
    assert {one.name for one in gateway_images()} == {"gateway-conformance", "echo-basic"}
    *_, pod = gateway_objects.suite(images, {"router.test": "10.0.0.1"}, "OneTest", ("-debug",))
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "r/suite@1"
    assert {"-run-test=OneTest", "-debug", "-gateway-class=hcp"} <= set(container["args"])
    given = dict(one.split("=") for one in container["env"][0]["value"].split(","))
    assert given["registry.k8s.io/gateway-api/echo-basic"] == "r/echo@1"
    assert pod["spec"]["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["router.test"]}]


def test_the_router_is_that_of_hosted_clusters() -> None:
    found = {(one["kind"], one["metadata"]["name"]): one for one in gateway_objects.router("apps.test", "r/router@1")}
    (container,) = found["Deployment", "router-default"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "r/router@1"
    assert "--ingress-class=openshift-default" in container["args"]
    assert ("Secret", "default-ingress-cert") in found
    assert gateway_objects.gateway_class()["spec"]["controllerName"] == CONTROLLER


def test_features_are_named_once() -> None:
    assert len(FEATURES) == len(set(FEATURES))
