"""The suite's report in a few lines."""

from __future__ import annotations

from conformance.report import read_junit, read_passed, render, together, write_passed

_JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6" time="95"><testsuite name="Kubernetes e2e suite" time="93.5">
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="2"/>
<testcase name="[It] [sig-a] good [Conformance]" status="passed" time="41.2"/>
<testcase name="[It] [sig-a] bad [Conformance]" status="failed" time="50">
<failure type="failed">[FAILED] no answer
In [It] at: x.go:1
three
four
five</failure></testcase>
<testcase name="[It] [sig-a] not here [Conformance]" status="skipped" time="0.1">
<skipped message="skipped - needs two zones"/></testcase>
<testcase name="[It] [sig-a] nobody asked [Conformance]" status="skipped" time="0">
<skipped message="skipped"/></testcase>
</testsuite></testsuites>"""


def test_specs_nobody_asked_for_are_left_out() -> None:
    report = read_junit(_JUNIT)
    assert report.states == {"passed": 1, "failed": 1, "skipped": 1}
    assert "nobody asked" not in render(report)


def test_a_failure_is_told_with_its_first_lines() -> None:
    text = render(read_junit(_JUNIT))
    assert "[FAILED] no answer" in text
    assert "five" not in text
    assert text.endswith("1 passed, 1 failed, 1 skipped in 94 s")


def test_one_failure_makes_the_run_a_failure() -> None:
    assert not read_junit(_JUNIT).well


def test_a_run_without_any_spec_is_no_success() -> None:
    assert not read_junit('<testsuites><testsuite time="1"/></testsuites>').well


def test_a_name_that_the_suite_does_not_have_is_no_success() -> None:
    passed = '<testsuites><testsuite time="1"><testcase name="[It] a" time="1"/></testsuite></testsuites>'
    assert read_junit(passed, ["a"]).well
    report = read_junit(passed, ["a", "b"])
    assert report.unknown == ("b",)
    assert not report.well


def test_a_failed_step_of_the_suite_itself_counts() -> None:
    broken = (
        '<testsuites><testsuite><testcase name="[SynchronizedBeforeSuite]" time="9">'
        '<failure type="failed">nodes never became ready</failure></testcase></testsuite></testsuites>'
    )
    report = read_junit(broken)
    assert report.states["failed"] == 1
    assert "nodes never became ready" in render(report)


def test_a_run_that_was_cut_short_is_no_success() -> None:
    passed = '<testsuites><testsuite time="1"><testcase name="[It] a" time="1"/></testsuite></testsuites>'
    report = read_junit(passed, code=197)
    assert not report.well
    assert "ended with code 197" in render(report)


def test_a_run_that_goes_on_counts_what_passed_before_once() -> None:
    before = read_passed("[sig-a] earlier\t30\n[sig-a] good [Conformance]\t99\n")
    found = together(before, read_junit(_JUNIT))
    assert found.states == {"passed": 2, "failed": 1, "skipped": 1}
    assert write_passed(found) == "[sig-a] earlier\t30\n[sig-a] good [Conformance]\t41\n"
