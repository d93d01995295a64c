"""Choosing specs and calling the suite."""

from __future__ import annotations

import re
from pathlib import Path

from conformance import policies, prepull, steps, suite
from conformance.options import options_from

SPECS = Path(suite.__file__).with_name("specs.txt")
HERE = Path("/results")


def test_comments_and_empty_lines_are_no_specs() -> None:
    assert suite.parse_specs("# why\n\n  [sig-a] one [Conformance]  \n#[sig-a] two\n") == ["[sig-a] one [Conformance]"]


def test_the_list_names_conformance_specs_once_each() -> None:
    names = suite.parse_specs(SPECS.read_text())
    assert len(names) == len(set(names)) > 10
    assert [name for name in names if not re.fullmatch(r"\[sig-[a-z-]+\] .+ \[Conformance\]", name)] == []


def test_the_list_touches_what_a_hosted_cluster_must_do() -> None:
    text = "\n".join(suite.parse_specs(SPECS.read_text()))
    for word in ("Pods", "Services", "DNS", "ConfigMap", "Secrets", "remote command execution", "logs"):
        assert word in text


def test_a_focus_matches_its_specs_and_none_that_only_begin_like_them() -> None:
    focus = suite.focus_of(["[sig-a] volume (root,0644) [X]", "[sig-b] is *not* `a` [X]"])
    assert re.search(focus, "suite [sig-a] volume (root,0644) [X]")
    assert re.search(focus, "suite [sig-b] is *not* `a` [X]")
    assert not re.search(focus, "suite [sig-a] volume (root,0644) [X] as non-root")
    assert "\\ " not in focus


def test_images_come_from_the_embedded_registry_under_the_tags_the_suite_asks_for() -> None:
    where = suite.repo_list()["promoterE2eRegistry"]
    assert where == suite.repo_list()["gcRegistry"] == "registry.hcp.test:5000/hcp"
    assert suite.references()["agnhost"].startswith(f"{where}/agnhost:2.")
    assert suite.references()["pause"].startswith(f"{where}/pause:3.")
    made = {"agnhost", "busybox", "glibc-dns-testing", "nginx", "pause-e2e"}
    assert {f"image-{name}" for name in made} == set(suite.IMAGES)


def test_every_image_is_pulled_on_every_node_before_the_suite() -> None:
    _, daemon_set = prepull.manifests(suite.references())
    pod = daemon_set["spec"]["template"]["spec"]
    pulled = [container["image"] for container in (*pod["initContainers"], *pod["containers"])]
    assert sorted(pulled) == sorted(suite.references().values())


def test_one_spec_at_a_time_needs_no_runner() -> None:
    argv = suite.suite_argv(options_from({}, HERE), "a|b", Path("/bin"), Path("/kubectl"))
    assert argv[0] == "/bin/e2e.test"
    assert {"--ginkgo.focus=a|b", f"--kubeconfig={HERE}/hosted.kubeconfig", f"--report-dir={HERE}"} <= set(argv)


def test_several_specs_at_once_go_through_the_runner() -> None:
    options = options_from({"PARALLEL": "3", "ARGS": "--num-nodes=2 -x"}, HERE)
    argv = suite.suite_argv(options, "a", Path("/bin"), Path("/kubectl"), dry=True)
    before, after = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    assert before[:2] == ["/bin/ginkgo", "--procs=3"]
    assert before[-1] == "/bin/e2e.test"
    assert "--dry-run=true" in before
    assert after[-2:] == ["--num-nodes=2", "-x"]


def test_what_is_skipped_is_told_to_whoever_chooses_specs() -> None:
    alone = suite.suite_argv(options_from({"SKIP": "slow"}, HERE), "a", Path("/bin"), Path("/kubectl"))
    assert "--ginkgo.skip=slow" in alone
    several = options_from({"SKIP": "slow", "PARALLEL": "2"}, HERE)
    argv = suite.suite_argv(several, "a", Path("/bin"), Path("/kubectl"))
    assert "--skip=slow" in argv[: argv.index("--")]
    assert not [word for word in suite.suite_argv(options_from({}, HERE), "a", HERE, HERE) if "skip" in word]


def test_specs_of_policies_find_them_enforced_and_leave_sctp_out() -> None:
    for focus in ("NetworkPolicy", r"\[Feature:NetworkPolicy\]", "Netpol"):
        assert policies.wanted(focus)
        for parallel in ("1", "2"):
            options = options_from({"FOCUS": focus, "PARALLEL": parallel}, HERE)
            argv = suite.suite_argv(options, focus, Path("/bin"), Path("/kubectl"))
            [skip] = [word.partition("skip=")[2] for word in argv if "skip=" in word]
            assert re.search(skip, "NetworkPolicy [Feature:SCTPConnectivity] should enforce policy based on Ports")
            assert not re.search(skip, "Netpol [Feature:NetworkPolicy] should enforce policy based on Ports")
    assert not policies.wanted("Services should serve")
    _, policy = policies.manifests()
    assert policy["spec"]["podSelector"]["matchLabels"], "an empty selector would choose every pod"


def test_a_ready_hosted_cluster_is_only_tested() -> None:
    options = options_from({"KUBECONFIG": "/k", "NAME": "", "FOCUS": "x"}, HERE)
    assert options.guest == Path("/k")
    assert not options.push
    assert options_from({"KUBECONFIG": "/k", "NAME": "demo"}, HERE).push


def test_upstream_images_need_neither_a_push_nor_a_list() -> None:
    options = options_from({"IMAGES": "upstream"}, HERE)
    assert not options.push
    assert suite.suite_environment(options) == {}
    assert suite.suite_environment(options_from({}, HERE)) == {"KUBE_TEST_REPO_LIST": f"{HERE}/repositories.yaml"}


def test_only_what_was_made_is_removed() -> None:
    options = options_from({"NAME": "n", "CLUSTER": "c"}, HERE)
    purge = [["local", "down", "--name", "n", "--purge"]]
    assert steps.removal(options, steps.Made(management=True, hosted=True)) == purge
    gone, stopped = steps.removal(options, steps.Made(started=True, hosted=True))
    assert gone[:5] == ["destroy", "cluster", "kubevirt", "--name", "c"]
    assert stopped == ["local", "down", "--name", "n"]
    assert steps.removal(options, steps.Made()) == []


def test_everything_stays_where_a_person_asks_for_it() -> None:
    assert steps.removal(options_from({"KEEP": "1"}, HERE), steps.Made(management=True, hosted=True)) == []


def test_a_hosted_cluster_gets_two_nodes_and_its_images() -> None:
    options = options_from({}, HERE)
    (push,) = steps.images(options, hosted=True)
    assert {"image-hcp", "release-1.36", "image-agnhost"} <= set(push)
    _, create = steps.hosted(options)
    assert create[create.index("--node-pool-replicas") + 1] == "2"
    assert "image-hcp" not in steps.images(options, hosted=False)[0]


def test_what_passed_is_left_out_beside_what_is_skipped() -> None:
    argv = suite.suite_argv(options_from({"SKIP": "slow"}, HERE), "a", HERE, HERE, passed=["[sig-a] good", "[sig-a] b"])
    [skip] = [word.partition("skip=")[2] for word in argv if "skip=" in word]
    assert re.search(skip, "[sig-a] good")
    assert re.search(skip, "[sig-a] slow")
    assert not re.search(skip, "[sig-a] good as well")
