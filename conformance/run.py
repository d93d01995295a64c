"""The Kubernetes project's own e2e specs against a hosted cluster: `make conformance`, see docs/conformance.md.

What is there is used and left, what is missing is made and removed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from conformance import policies, prepull, report, steps, suite
from conformance.options import Options, options_from

from hcp import payload

SPECS = Path(__file__).with_name("specs.txt")
FOLDER = Path("build/conformance")
KUBERNETES = "kubernetes-1.36"
_WORTH_A_LINE = ("[sig-", "•", "S [SKIPPED]", "Will run ", "Ran ")


class Failed(Exception):
    """A step before the suite went wrong; its own output has said why."""


def main() -> int:
    options = options_from(os.environ, FOLDER)
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        return dry_run(options) if "--dry-run" in sys.argv[1:] else run(options)
    except Failed as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1


def run(options: Options) -> int:
    programs = payload.ensure([suite.PAYLOAD, KUBERNETES, *(suite.IMAGES if options.push else ())])
    made = steps.Made()
    try:
        if options.kubeconfig is None:
            state = embedded(options.name)
            made = steps.Made(management=state == "", started=state not in ("", "up"), hosted=state == "")
            if state != "up":
                hcp(steps.management(options))
            hcp_into(options.management, ["local", "kubeconfig", "--name", options.name])
            made = replace(made, hosted=made.management or not has_hosted(options))
        if options.push:
            hcp(steps.images(options, hosted=made.hosted))
        if made.hosted:
            options.pull_secret.write_text('{"auths": {}}\n')  # the embedded registry asks for no credentials
            hcp(steps.hosted(options))
        if options.kubeconfig is None:
            hcp(steps.ready(options))
            hcp_into(options.guest, ["create", "kubeconfig", "--name", options.cluster, *access(options)])
        kubectl = programs[KUBERNETES] / "bin" / "kubectl"
        if options.own_images:
            pull(options, kubectl)
        with first_policy(options, kubectl) if policies.wanted(options.focus) else contextlib.nullcontext():
            found = run_suite(options, programs)
        print(f"\n{report.render(found)}\nReport: {options.junit}", flush=True)
        return 0 if found.well else 1
    finally:
        hcp(steps.removal(options, made), check=False)
        if options.keep and made.hosted:
            print(f"\nKept: embedded cluster {options.name}, hosted cluster {options.cluster}, {options.guest}")


def dry_run(options: Options) -> int:
    """Names what would run. In a folder of its own: the suite's report calls all of it passed."""
    apart = replace(options, folder=options.folder / "dry-run")
    apart.folder.mkdir(exist_ok=True)
    found = run_suite(apart, payload.ensure([suite.PAYLOAD, KUBERNETES]), dry=True)
    print("\n".join(["", *sorted(result.name for result in found.results), *(f"unknown: {x}" for x in found.unknown)]))
    return 0 if found.well else 1


def run_suite(options: Options, programs: dict[str, Path], *, dry: bool = False) -> report.Report:
    """Runs the suite; its words go to a log, and to the terminal those that say how far it is."""
    asked = [] if options.focus else suite.parse_specs(SPECS.read_text())
    focus = options.focus or suite.focus_of(asked)
    options.repo_list.write_text(yaml.safe_dump(suite.repo_list()))
    options.junit.unlink(missing_ok=True)
    before = report.read_passed(options.passed.read_text()) if options.resume and options.passed.exists() else ()
    kubectl = programs[KUBERNETES] / "bin" / "kubectl"
    done = [result.name for result in before]
    argv = suite.suite_argv(options, focus, programs[suite.PAYLOAD] / "bin", kubectl, dry=dry, passed=done)
    print(f"\n== The specs (log: {options.log})", flush=True)
    code = follow(argv, {**os.environ, **suite.suite_environment(options)}, options.log)
    if not options.junit.exists():
        raise Failed(f"The suite ended with code {code} and without a report. The end of its log:\n{tail(options.log)}")
    found = report.together(before, report.read_junit(options.junit.read_text(), asked, code=code))
    if not dry:
        options.passed.write_text(report.write_passed(found))
    return found


def follow(argv: Sequence[str], environment: dict[str, str], log: Path) -> int:
    began = time.monotonic()
    with (
        log.open("w") as record,
        subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child,
    ):
        for line in child.stdout or ():
            record.write(line)
            record.flush()
            if line.startswith(_WORTH_A_LINE):
                print(f"{time.monotonic() - began:6.0f} s  {line.rstrip()[:160]}", flush=True)
        return child.wait()


def pull(options: Options, kubectl: Path) -> None:
    """Every image on every node, with more patience than a spec has."""
    print("\n== Test images onto the nodes", flush=True)
    call = [str(kubectl), f"--kubeconfig={options.guest}"]
    text = yaml.safe_dump_all(prepull.manifests(suite.references()))
    where = ["-n", prepull.NAMESPACE]
    waiting = ["rollout", "status", f"daemonset/{prepull.NAME}", *where, "--timeout=30m"]
    try:
        tool([*call, "apply", "-f", "-"], stdin=text)
        tool([*call, *waiting])
    finally:
        tool([*call, "delete", "namespace", prepull.NAMESPACE, "--ignore-not-found"], check=False)


@contextlib.contextmanager
def first_policy(options: Options, kubectl: Path) -> Iterator[None]:
    """Policies are enforced on every node, and go on being while the suite takes its own away again."""
    print("\n== Enforcement of NetworkPolicies onto the nodes", flush=True)
    call = [str(kubectl), f"--kubeconfig={options.guest}"]
    try:
        tool([*call, "apply", "-f", "-"], stdin=yaml.safe_dump_all(policies.manifests()))
        own = subprocess.run([*call, *policies.own_network()], stdout=subprocess.PIPE, text=True, check=False).stdout
        for command in policies.waits() if own.strip() else ():
            tool([*call, *command])
        yield
    finally:
        tool([*call, "delete", "namespace", policies.NAMESPACE, "--ignore-not-found"], check=False)


def embedded(name: str) -> str:
    """The state of an embedded cluster: up, down, killed; empty where there is none."""
    listed = json.loads(answer(["local", "list", "-o", "json"]))
    return next((str(item["state"]) for item in listed if item["name"] == name), "")


def has_hosted(options: Options) -> bool:
    found = subprocess.run(
        words(["get", "clusters", options.cluster, "-o", "name", *access(options)]), capture_output=True, check=False
    )
    return found.returncode == 0


def access(options: Options) -> tuple[str, str]:
    return ("--kubeconfig", str(options.management))


def hcp(commands: Iterable[Sequence[str]], *, check: bool = True) -> None:
    for command in commands:
        print(f"\n$ hcp {' '.join(command)}", flush=True)
        tool(words(command), check=check)


def hcp_into(path: Path, command: Sequence[str]) -> None:
    path.touch(mode=0o600)
    path.write_text(answer(command))


def answer(command: Sequence[str]) -> str:
    done = subprocess.run(words(command), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Failed(f"hcp {' '.join(command)} ended with code {done.returncode}")
    return done.stdout


def tool(argv: Sequence[str], *, stdin: str | None = None, check: bool = True) -> None:
    code = subprocess.run(argv, input=stdin, text=True, check=False).returncode
    if code and check:
        raise Failed(f"{Path(argv[0]).name} {' '.join(argv[1:])} ended with code {code}")


def words(command: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "hcp", *command]


def tail(path: Path, lines: int = 30) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


if __name__ == "__main__":
    sys.exit(main())
