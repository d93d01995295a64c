from __future__ import annotations

from typing import Any

import pytest
from tests.support.unit.controlplane import params

from hcp.controlplane import apiserver, controller_manager, scheduler, tls_profiles

ALL = (apiserver, controller_manager, scheduler)


def profile(kind: str, **custom: Any) -> dict[str, Any]:
    return {"tlsSecurityProfile": {"type": kind, **({"custom": custom} if custom else {})}}


def spec(api: dict[str, Any]) -> dict[str, Any]:
    return {"configuration": {"apiServer": api}}


def flags(part: Any, api: dict[str, Any], name: str) -> list[str]:
    return [one.partition("=")[2] for one in part.arguments(params(api_config=api)) if one.startswith(f"--{name}=")]


@pytest.mark.parametrize("part", ALL)
@pytest.mark.parametrize(
    ("kind", "version"), [("Old", "VersionTLS10"), ("Intermediate", "VersionTLS12"), ("Modern", "VersionTLS13")]
)
def test_every_part_speaks_the_profile(part: Any, kind: str, version: str) -> None:
    assert flags(part, profile(kind), "tls-min-version") == [version]
    (ciphers,) = flags(part, profile(kind), "tls-cipher-suites")
    assert ("TLS_RSA_WITH_AES_128_CBC_SHA" in ciphers) == (kind == "Old")
    assert ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" in ciphers) == (kind != "Modern")


def test_without_one_nothing_rolls_and_it_is_the_intermediate_one() -> None:
    assert tls_profiles.of({}) == tls_profiles.of(profile("Intermediate"))
    assert flags(controller_manager, {}, "tls-cipher-suites") == []
    assert flags(scheduler, {}, "tls-cipher-suites") == []


def test_names_of_openssl_and_of_the_standard_are_both_understood() -> None:
    asked = ["ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES128-GCM-SHA256"]
    api = profile("Custom", ciphers=asked, minTLSVersion="VersionTLS12")
    assert tls_profiles.of(api).ciphers == (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    )
    assert tls_profiles.problems(spec(api)) == []
    assert "DHE-RSA-AES128-GCM-SHA256" in tls_profiles.left_out(spec(api))[0]


def test_what_would_keep_the_api_server_from_starting_is_refused_and_not_used() -> None:
    api = profile("Custom", ciphers=["ECDHE-RSA-AES256-GCM-SHA384"], minTLSVersion="VersionTLS12")
    assert "HTTP/2" in tls_profiles.problems(spec(api))[0]
    assert tls_profiles.of(api) == tls_profiles.Profile()
    assert tls_profiles.problems(spec(profile("Custom", minTLSVersion="VersionTLS12")))
    assert tls_profiles.problems(spec(profile("Custom", ciphers=[], minTLSVersion="VersionTLS13"))) == []
