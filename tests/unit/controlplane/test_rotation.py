"""How an authority moves from stage to stage, and what is never done."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from tests.support.unit.controlplane import params

from hcp.api import names
from hcp.controlplane import certs, controller_manager, issuing, rotation, validity
from hcp.controlplane.rotation import Authority, Request
from hcp.errors import HcpError
from hcp.pki import new_ca

NOW = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
ALL = Request(tuple(certs.AUTHORITIES), "one")


def authorities() -> dict[str, Authority]:
    return {name: Authority(new_ca(cn)) for name, cn in certs.AUTHORITIES.items()}


def step(
    known: dict[str, Authority], now: dt.datetime, asked: Request = ALL, *, settled: bool = True
) -> dict[str, Authority]:
    return {name: rotation.advance(params(), name, known, asked, now, settled=settled) for name in known}


def test_nothing_happens_unasked_and_what_is_asked_happens_once() -> None:
    known = authorities()
    assert step(known, NOW, Request()) == known
    begun = step(known, NOW)
    assert {one.stage for one in begun.values()} == {rotation.DISTRIBUTING}
    for name, one in begun.items():
        assert one.active == known[name].active, "the old one signs until everybody knows the new one"
        assert one.coming is not None and one.coming.cert_pem in one.trusted and one.active.cert_pem in one.trusted
    assert step(begun, NOW + 9 * HOUR, settled=False) == begun


def test_signers_go_ahead_and_the_authority_people_hold_waits_for_them_and_for_the_overlap() -> None:
    first = step(authorities(), NOW)
    second = step(first, NOW + dt.timedelta(minutes=5))
    assert second["root-ca"].stage == rotation.DISTRIBUTING
    assert second["etcd-signer"].stage == second[rotation.ADMIN].stage == rotation.REISSUING
    assert second["etcd-signer"].trusted == first["etcd-signer"].trusted, "no bundle changes with the signer"
    assert step(second, NOW + HOUR)["root-ca"].stage == rotation.DISTRIBUTING
    third = step(second, NOW + HOUR + dt.timedelta(minutes=5))
    assert third["root-ca"].stage == rotation.REISSUING
    assert third["etcd-signer"].stage == rotation.FINISHING
    assert third["etcd-signer"].trusted == third["etcd-signer"].active.cert_pem
    fourth = step(third, NOW + 3 * HOUR)
    last = step(fourth, NOW + 3 * HOUR)
    assert {name for name, one in last.items() if one.stage} == {rotation.KUBELETS}
    # What kubelets hold was signed for two years.
    assert step(last, NOW + 17000 * HOUR)[rotation.KUBELETS].stage == rotation.REISSUING
    assert step(last, NOW + 17600 * HOUR)[rotation.KUBELETS].stage == rotation.FINISHING


def test_a_revoked_signer_is_gone_at_once_whatever_else_goes_on() -> None:
    begun = step(authorities(), NOW)
    after = step(begun, NOW, replace(ALL, revoke="now"), settled=False)
    revoked = after[rotation.ADMIN]
    assert revoked.trusted == revoked.active.cert_pem
    assert revoked.active not in (begun[rotation.ADMIN].active, begun[rotation.ADMIN].coming)
    assert after["root-ca"] == begun["root-ca"]
    assert step(after, NOW, replace(ALL, revoke="now"), settled=False) == after
    assert step(after, NOW, replace(ALL, revoke="now"))[rotation.ADMIN].stage == ""


def test_a_secret_says_everything_that_the_next_process_needs() -> None:
    p = params()
    for state in (authorities(), step(authorities(), NOW), step(step(authorities(), NOW), NOW + HOUR)):
        for name, one in state.items():
            assert rotation.read(rotation.manifest(p, name, one)) == one


def test_a_secret_is_changed_only_as_it_was_seen() -> None:
    p = params()
    begun = step(authorities(), NOW)["etcd-signer"]
    live = rotation.manifest(p, "etcd-signer", begun)
    live["metadata"]["resourceVersion"] = "7"
    patch = rotation.change(live, rotation.manifest(p, "etcd-signer", replace(begun, coming=None, stage="", since="")))
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["data"]["next.key"] is None and patch["data"]["ca.key"] == live["data"]["ca.key"]
    assert patch["metadata"]["annotations"][names.ANNOTATION_ROTATION_STAGE] is None
    assert patch["metadata"]["annotations"][names.ANNOTATION_ROTATED] == "one"


def test_a_new_bundle_is_written_without_a_new_certificate() -> None:
    p, known = params(), authorities()
    first = issuing.leaves(p, certs.etcd_leaves(p), {}, known)
    begun = step(known, NOW)
    second = issuing.leaves(p, certs.etcd_leaves(p), first.secrets, begun)
    assert second.fresh == set(first.secrets)
    for name, secret in second.secrets.items():
        same = {key: value for key, value in secret["data"].items() if key != "ca.crt"}
        assert same.items() <= first.secrets[name]["data"].items()
    assert issuing.leaves(p, certs.etcd_leaves(p), second.secrets, begun).fresh == set()
    after = step(begun, NOW)
    third = issuing.leaves(p, certs.etcd_leaves(p), second.secrets, after)
    assert third.fresh == set(first.secrets), "the new authority signs"
    assert issuing.leaves(p, certs.etcd_leaves(p), third.secrets, after).fresh == set()


@pytest.mark.parametrize("text", ["root-ca", "@x", "nobody@x", "root-ca@"])
def test_a_request_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(HcpError, match="rotate-authorities"):
        rotation.request({names.ANNOTATION_ROTATE: text})


def test_requests_are_read() -> None:
    notes = {names.ANNOTATION_ROTATE: "all@2026", names.ANNOTATION_ROTATION_OVERLAP: "1h30m"}
    assert rotation.request(notes) == Request(tuple(certs.AUTHORITIES), "2026", "", dt.timedelta(minutes=90))
    assert rotation.request({}) == Request()


def test_lives_of_certificates_are_asked_for_by_annotation_and_nonsense_changes_nothing() -> None:
    def with_validity(text: str) -> float:
        return validity.of_leaves(params(annotations={names.ANNOTATION_CERTIFICATE_VALIDITY: text}))

    assert with_validity("") == 365
    assert with_validity("720h") == 30
    for text in ("1h", "soon", "99999999h", "1e9h"):
        assert with_validity(text) == 365
        assert "certificate-validity" in validity.problem({names.ANNOTATION_CERTIFICATE_VALIDITY: text})
    assert "--cluster-signing-duration=17520h" in controller_manager.arguments(params())
    short = params(annotations={names.ANNOTATION_CERTIFICATE_VALIDITY: "720h"})
    assert "--cluster-signing-duration=720h" in controller_manager.arguments(short)
