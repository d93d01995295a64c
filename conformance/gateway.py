"""The Gateway API project's conformance tests against the router of hosted clusters: `make conformance-gateway`.

The router runs as in a hosted cluster, with the same Deployment and image, on an embedded cluster without virtual
machines, or it is that of the hosted cluster of KUBECONFIG. See docs/conformance.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml
from conformance import gateway_objects as objects
from conformance import gateway_report as report
from conformance import run
from conformance.options import Options, options_from

from hcp import payload
from hcp.api.names import ROUTER_NAMESPACE
from hcp.guest import ingress
from hcp.payload.image import image_digest, reference
from hcp.payload.published import repository

FOLDER = Path("build/conformance-gateway")
KNOWN = Path(__file__).with_name("gateway-known.tsv")
DEFINITIONS = "gateway-definitions"
IMAGES = ("image-gateway-conformance", "image-echo-basic", "image-coredns", "image-router")
_WAIT = "--timeout=10m"


def main() -> int:
    given = {key: value for key, value in os.environ.items() if value}
    options = options_from({"NAME": "gateway", **given}, FOLDER)
    if options.kubeconfig is not None and "NAME" not in given:
        print("With KUBECONFIG, NAME says into which embedded cluster's registry the images go", file=sys.stderr)
        return 2
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        return conform(options)
    except run.Failed as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1


def conform(options: Options) -> int:
    parts = payload.ensure([*IMAGES, DEFINITIONS, run.KUBERNETES])
    images = {
        name.removeprefix("image-"): reference(repository(parts[name]), image_digest(parts[name])) for name in IMAGES
    }
    made = run.embedded(options.name) == ""
    try:
        run.hcp([["local", "up", "--name", options.name, *(["--profile", "cluster"] if made else [])]])
        run.hcp([["local", "push", "--name", options.name, *IMAGES]])
        if options.kubeconfig is None:
            run.hcp_into(options.guest, ["local", "kubeconfig", "--name", options.name])
        kubectl = Kubectl(parts[run.KUBERNETES] / "bin" / "kubectl", options.guest)
        definitions = parts[DEFINITIONS] / "manifests" / "crds"
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(definitions))
        domain = kubectl.answer("get", "ingresses.config.openshift.io", "cluster", "-o", "jsonpath={.spec.domain}")
        if options.kubeconfig is None:
            stand_in(kubectl, domain, images["router"])
        kubectl.apply([objects.gateway_class()])
        return tell(options, follow(options, kubectl, domain, images))
    finally:
        if made and not options.keep:
            run.hcp([["local", "down", "--name", options.name, "--purge"]], check=False)


class Kubectl:
    """kubectl with the cluster in question."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self.words = [str(program), f"--kubeconfig={kubeconfig}"]

    def __call__(self, *words: str) -> None:
        run.tool([*self.words, *words])

    def apply(self, wanted: list[objects.Object]) -> None:
        text = yaml.safe_dump_all(wanted)
        run.tool([*self.words, "apply", "--server-side", "--force-conflicts", "-f", "-"], stdin=text)

    def answer(self, *words: str) -> str:
        done = subprocess.run([*self.words, *words], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise run.Failed(f"kubectl {' '.join(words)} ended with code {done.returncode}")
        return done.stdout


def stand_in(kubectl: Kubectl, domain: str, image: str) -> None:
    """The router of hosted clusters in the place of the embedded cluster's own."""
    where = ["-n", ROUTER_NAMESPACE]
    one = f"deployment/{ingress.NAME}"
    theirs = kubectl.answer("get", one, *where, "--ignore-not-found", "-o", "jsonpath={..nodeSelector}")
    if "control-plane" in theirs:
        kubectl("delete", one, *where)
    kubectl.apply(objects.router(domain, image))
    kubectl("rollout", "status", one, *where, _WAIT)


def follow(options: Options, kubectl: Kubectl, domain: str, images: dict[str, str]) -> str:
    """Runs the tests as a pod, and writes down what they say."""
    where = ["-n", ROUTER_NAMESPACE]
    address = kubectl.answer("get", "service", ingress.SERVICE, *where, "-o", "jsonpath={.spec.clusterIP}")
    pod = ["-n", objects.NAMESPACE, f"pod/{objects.NAME}"]
    kubectl("delete", *pod, "--ignore-not-found")
    # What a run that was ended left behind.
    kubectl("delete", "namespace", *objects.LEFT_BEHIND, "--ignore-not-found")
    hosts = {f"{ingress.NAME}.{domain}": address}
    kubectl.apply(objects.suite(images, hosts, options.focus, options.more))
    kubectl("wait", *pod, "--for=jsonpath={.status.phase}=Running", _WAIT)
    log = options.folder / "suite.log"
    print(f"\n== The tests (log: {log})", flush=True)
    with log.open("w") as record:
        subprocess.run([*kubectl.words, "logs", "-f", *pod], stdout=record, check=False)
    return log.read_text(errors="replace")


def tell(options: Options, log: str) -> int:
    tests, known = report.read(log), report.read_known(KNOWN.read_text())
    path = options.folder / "results.tsv"
    path.write_text(report.write(tests))
    print(f"\n{report.render(tests, known)}\nReport: {path}", flush=True)
    return 0 if tests and not report.surprises(tests, known) else 1


if __name__ == "__main__":
    sys.exit(main())
