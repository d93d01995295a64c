"""What a tenant finds in a hosted cluster with two machines of 2 GiB: ingress, `oc`, logins, a browser, monitoring.

One embedded cluster and one hosted cluster serve all of it, in this order: each test may build on those before it, and
what takes something away comes last. Limits only end what hangs; on an emulated processor a pull takes minutes.
`KEEP=1` uses the clusters that are there and leaves them.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support import chromium
from tests.support.e2e.control_planes import NS, condition, guest_of
from tests.support.e2e.hosted_tools import Guest, create, kept, pushed, with_operator
from tests.support.e2e.local_tools import HCP, Cluster, hcp
from tests.support.e2e.outside import Outside
from tests.support.e2e.zone import Zone
from tests.support.eventually import eventually_sync
from tests.support.guides import documents
from tests.support.login import HASH, PASSWORD

from hcp import payload

NAME, CLUSTER = "platform", "demo"
HOSTED = f"{NS}-{CLUSTER}"
RELEASE = "release-1.36-platform"
MONITORING = "openshift-monitoring"
# A ConfigMap of the management cluster: what was there before the first node, for runs that use a kept cluster.
BEFORE = "platform-before-nodes"
LONG = 2400

pytestmark = pytest.mark.timeout(7200)


@dataclass
class Place:
    """A hosted cluster seen from three sides: where it is kept, from inside, and by somebody far away."""

    management: Cluster
    guest: Guest
    outside: Outside
    trust: Path
    # Deployments and StatefulSets of the control plane before there was a node, with their generations.
    before: dict[str, int]
    domain: str

    @property
    def folder(self) -> Path:
        return self.management.kubeconfig.parent

    def status(self) -> Any:
        return self.management.get("hostedcluster", CLUSTER, "-n", NS)["status"]

    def operator(self, name: str) -> dict[str, str]:
        found = self.guest.get("co", name)["status"]["conditions"]
        return {one["type"]: one["status"] for one in found}

    def login(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return hcp(
            "login", "--name", CLUSTER, *self.login_access(), *words, check=check, env={"HOME": str(self.folder)}
        )

    def login_access(self) -> tuple[str, ...]:
        return ("--kubeconfig", str(self.management.kubeconfig), "--to", str(self.folder / "user.kubeconfig"))

    def logs_in(self, *words: str) -> None:
        """The servers behind it may be busy; what was said last is told if it never works."""

        def done() -> bool:
            ended = self.login(*words, check=False)
            assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}"
            return True

        eventually_sync(done, f"hcp login {' '.join(words)}", 600)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """kubectl with what `hcp login` wrote."""
        command = [str(self.management.kubectl_binary), f"--kubeconfig={self.folder / 'user.kubeconfig'}", *words]
        env = {**os.environ, "HOME": str(self.folder)}
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=180, env=env)

    def as_user(self, *words: str) -> str:
        return self.ask(*words).stdout.strip()

    def is_known_as(self, user: str) -> None:
        def known() -> bool:
            asked = self.ask("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
            assert asked.stdout.strip() == user, f"{asked.stdout}{asked.stderr}"
            return True

        eventually_sync(known, f"the token is that of {user}", 600)

    def powerless(self) -> bool:
        """A token that is believed without rights, or one that is believed no more, or none to be had."""
        asked = self.ask("auth", "can-i", "get", "nodes")
        refused = any(words in asked.stderr for words in ("Unauthorized", "provide credentials", "getting credentials"))
        assert asked.stdout.strip() == "no" or (refused and not asked.stdout.strip()), f"{asked.stdout}{asked.stderr}"
        return True


def workloads(management: Cluster) -> dict[str, int]:
    found = management.get("deployments,statefulsets", "-n", HOSTED)["items"]
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in found}


def before_nodes(management: Cluster) -> dict[str, int]:
    """Written down by the run that made the cluster."""
    if not management.kubectl("get", "configmap", BEFORE, "-n", NS, "-o", "name", "--ignore-not-found"):
        seen = {"workloads": json.dumps(workloads(management))}
        metadata = {"name": BEFORE, "namespace": NS}
        management.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": seen})
    found: dict[str, int] = json.loads(management.get("configmap", BEFORE, "-n", NS)["data"]["workloads"])
    return found


def authority(management: Cluster, hosted: str) -> Path:
    """Who signed for all that this cluster shows to the world, as its owner would hand it on."""
    path = management.kubeconfig.with_name(f"{hosted}.crt")
    path.write_text(management.get("configmap", "root-ca", "-n", hosted)["data"]["ca.crt"])
    return path


@pytest.fixture(scope="module")
def management(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with with_operator(NAME, tmp_path_factory.mktemp(NAME)) as made:
        yield made


@pytest.fixture(scope="module")
def place(management: Cluster) -> Place:
    """Only nodes are waited for: what is wrong with one part is told by its own test."""
    access = ("--kubeconfig", str(management.kubeconfig))
    if not kept(management, CLUSTER):
        create(management, CLUSTER, 2, "--release-image", pushed(management, RELEASE))
    hcp("wait", "cluster", CLUSTER, "--control-plane", "--timeout", "20m", *access)
    before, guest = before_nodes(management), Guest.of(management, CLUSTER)
    eventually_sync(lambda: len(guest.ready_nodes()) == 2, "two nodes are ready", LONG)
    domain = eventually_sync(
        lambda: guest.get("ingresses.config.openshift.io", "cluster")["spec"]["domain"], "the default domain", 600
    )
    outside = Outside(management, management.kubeconfig.parent)
    return Place(management, guest, outside, authority(management, HOSTED), before, domain)


# Ingress


def test_an_app_answers_below_the_default_domain_from_outside(place: Place) -> None:
    """The management cluster's router leads every name below the domain to the machines, TLS untouched."""
    url = f"https://anything.{place.domain}/"

    def answers() -> bool:
        """Nobody is behind the name yet; in a kept cluster the app of the run before is."""
        return place.outside.curl(url, place.trust).endswith(("\n503", "\n200"))

    eventually_sync(answers, "the router inside answers with the cluster's own certificate", LONG)
    place.guest.run_web("hello", replicas=1)
    page = 'echo "<title>It works</title>I am $(hostname)" > /tmp/www/index.html'

    def written() -> bool:
        place.guest.kubectl("exec", "deployment/hello", "--", "sh", "-c", page)
        return True

    eventually_sync(written, "a page in the app, through konnectivity", 600)
    route = {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {
            "host": f"anything.{place.domain}",
            "to": {"kind": "Service", "name": "hello"},
            "port": {"targetPort": 8080},
            "tls": {"termination": "edge"},
        },
    }
    place.guest.kubectl("apply", "-f", "-", stdin=json.dumps(route))

    def answered() -> bool:
        return place.outside.curl(url, place.trust).splitlines()[0].startswith("<title>It works</title>I am hello-")

    eventually_sync(answered, "an app through both routers", 600)


def test_the_routers_operator_is_well(place: Place) -> None:
    def well() -> bool:
        found = place.operator("ingress")
        return (found["Available"], found["Degraded"]) == ("True", "False")

    eventually_sync(well, "ingress is available", LONG)


# Logins


def test_kubeadmin_logs_in_and_the_api_server_stays_as_it_was(place: Place) -> None:
    assert "oauth-openshift" not in place.before, "a control plane without nodes has no OAuth server"

    def told() -> bool:
        status = place.status()
        return bool(status.get("kubeadminPassword")) and bool(status.get("oauthCallbackURLTemplate"))

    eventually_sync(told, "the status names the password", 600)
    place.management.kubectl("rollout", "status", "deployment/oauth-openshift", "-n", HOSTED, "--timeout=580s")
    place.logs_in()
    place.is_known_as("kube:admin")
    eventually_sync(lambda: place.as_user("auth", "can-i", "*", "*", "--all-namespaces") == "yes", "every right", 300)
    after = workloads(place.management)
    assert after.keys() - place.before.keys() == {"oauth-openshift"}, "one more pod for a cluster with nodes"
    assert after["kube-apiserver"] == place.before["kube-apiserver"], "it reads whom to believe while it runs"


def kubeadmin_password(place: Place) -> str:
    secret = place.management.get("secret", place.status()["kubeadminPassword"]["name"], "-n", NS)
    return base64.b64decode(secret["data"]["password"]).decode()


def test_a_browser_opens_the_app_and_logs_in(place: Place, tmp_path: Path) -> None:
    """Chromium, which asks the cluster's DNS and trusts the cluster's authority and nobody else."""
    with chromium.browser(tmp_path, place.trust, place.outside.words) as page:
        page.open(f"https://anything.{place.domain}/")
        page.shows("I am hello-")
        assert page.value("document.title") == "It works"

        (place.folder / "user.kubeconfig").unlink(missing_ok=True)
        command = [str(HCP), "login", "--name", CLUSTER, "--web", *place.login_access()]
        # The page is opened below, by the browser of this test.
        env = {**os.environ, "HOME": str(tmp_path), "BROWSER": "true"}
        started = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert started.stderr is not None
        said: list[str] = []
        for line in started.stderr:
            said.append(line.strip())
            if line.startswith("https://"):
                break
        url = said[-1] if said else ""
        assert url.startswith("https://"), f"hcp login says no address: {said}"
        page.open(url)
        page.fill_in(login="kubeadmin", password=kubeadmin_password(place))
        page.shows("You are logged in")
        out, error = started.communicate(timeout=300)
        assert started.returncode == 0, f"{out}{error}"
    env = {**os.environ, "HOME": str(tmp_path)}
    command = [str(place.management.kubectl_binary), f"--kubeconfig={place.folder / 'user.kubeconfig'}"]
    done = subprocess.run(
        [*command, "get", "nodes", "-o", "name"], capture_output=True, text=True, check=True, timeout=180, env=env
    )
    assert len(done.stdout.split()) == 2


# Version and parts, as `oc` shows them


def oc(place: Place, *words: str) -> str:
    command = [str(payload.ensure(["oc"])["oc"] / "bin" / "oc"), f"--kubeconfig={place.guest.kubeconfig}", *words]
    env = {**os.environ, "HOME": str(place.folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180, env=env)
    assert done.returncode == 0, f"oc {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def test_oc_shows_version_nodes_and_operators(place: Place) -> None:
    parts = {"authentication", "dns", "etcd", "ingress", "kube-apiserver", "monitoring", "network"}

    def shown() -> bool:
        rows = [line.split() for line in oc(place, "get", "clusterversion,nodes,co", "--no-headers").splitlines()]
        found = {row[0]: row[1:] for row in rows if row}
        assert len([name for name in found if name.startswith("node/")]) == 2
        operators = {name.partition("/")[2]: row for name, row in found.items() if name.startswith("clusteroperator")}
        assert parts <= operators.keys(), operators
        version = found["clusterversion.config.openshift.io/version"]
        return version[1:3] == ["True", "False"] and all(
            row[1:4] == ["True", "False", "False"] for row in operators.values()
        )

    eventually_sync(shown, "the version is reached and every part is well", LONG)
    print(oc(place, "get", "clusterversion,nodes,co"))
    version = place.guest.get("clusterversion", "version")["status"]["history"][0]
    assert version["state"] == "Completed"
    words = f"Cluster version is {version['version']}"
    eventually_sync(lambda: words in oc(place, "adm", "upgrade"), words, 300)


def test_the_hosted_cluster_says_the_same_from_outside(place: Place) -> None:
    access = ("--kubeconfig", str(place.management.kubeconfig))
    hcp("wait", "cluster", CLUSTER, "--timeout", "20m", *access)
    wanted = {
        "ClusterVersionAvailable": "True",
        "ClusterVersionSucceeding": "True",
        "ClusterVersionReleaseAccepted": "True",
        "ClusterVersionProgressing": "False",
    }

    def same() -> bool:
        found = {one["type"]: one for one in place.status()["conditions"]}
        assert {kind: found[kind]["status"] for kind in wanted} == wanted, [found[kind] for kind in wanted]
        return True

    eventually_sync(same, "what the version inside says", 300)


# Monitoring


def test_the_parts_of_monitoring_are_named_as_people_know_them(place: Place) -> None:
    eventually_sync(lambda: place.operator("monitoring")["Available"] == "True", "it works", LONG)

    def there() -> bool:
        pods = [pod["metadata"]["name"] for pod in place.guest.get("pods", "-n", MONITORING)["items"]]
        for name in ("prometheus-k8s-0", "kube-state-metrics-", "metrics-server-", "node-exporter-"):
            assert [pod for pod in pods if pod.startswith(name)], f"no {name} among {pods}"
        return True

    eventually_sync(there, "its pods", 300)


def test_top_shows_nodes_and_pods(place: Place) -> None:
    """kube-apiserver asks metrics-server through konnectivity."""

    def shown() -> bool:
        lines = place.guest.kubectl("top", "nodes", "--no-headers").splitlines()
        return {line.split()[0] for line in lines} == set(place.guest.ready_nodes())

    eventually_sync(shown, "kubectl top nodes", 900)
    top = partial(place.guest.kubectl, "top", "pods", "-A")
    eventually_sync(lambda: "prometheus-k8s-0" in top(), "kubectl top pods", 600)
    print(place.guest.kubectl("top", "nodes") + top())


def test_an_autoscaler_of_pods_follows_their_load(place: Place) -> None:
    guest = place.guest
    guest.run_web("busy", replicas=1)
    container = {"name": "web", "resources": {"requests": {"cpu": "10m"}}}
    # A second process that never rests, beside the web server.
    burner = {
        "name": "burner",
        "image": guest.image(),
        "command": ["sh", "-c", "while :; do :; done"],
        "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "100m"}},
    }
    patch = {"spec": {"template": {"spec": {"containers": [container, burner], "topologySpreadConstraints": None}}}}
    guest.kubectl("patch", "deployment", "busy", "--type=strategic", "-p", json.dumps(patch))
    guest.kubectl("autoscale", "deployment", "busy", "--cpu=50%", "--min=1", "--max=2")
    eventually_sync(lambda: guest.get("hpa", "busy")["status"].get("desiredReplicas") == 2, "a second pod", 1200)
    guest.kubectl("delete", "hpa,deployment,service", "busy", "--wait=false")


def test_prometheus_asks_everything_there_is(place: Place) -> None:
    wanted = {"apiserver", "coredns", "kube-state-metrics", "kubelet", "metrics-server", "node-exporter", "router"}

    def up() -> bool:
        query = ("promtool", "query", "instant", "--http.config.file=/etc/monitoring/web/client.json", "-o", "json")
        text = place.guest.kubectl(
            *("exec", "-n", MONITORING, "prometheus-k8s-0", "--", *query, "https://localhost:9091", "up")
        )
        found = [(one["metric"]["job"], one["value"][1]) for one in json.loads(text)]
        down = [job for job, value in found if value != "1"]
        assert not down, f"no answer of {down}"
        return wanted <= {job for job, _ in found}

    eventually_sync(up, "every target answers", 1200)


# What takes something away


def test_without_the_capability_prometheus_is_gone_and_top_still_works(place: Place) -> None:
    patch = json.dumps({"spec": {"capabilities": {"disabled": ["Monitoring"]}}})
    place.management.kubectl("patch", "hostedcluster", CLUSTER, "-n", NS, "--type=merge", "-p", patch)

    def left() -> bool:
        pods = [pod["metadata"]["name"] for pod in place.guest.get("pods", "-n", MONITORING)["items"]]
        return bool(pods) and all(pod.startswith("metrics-server-") for pod in pods)

    eventually_sync(left, "only metrics-server is left", 900)
    eventually_sync(lambda: place.guest.kubectl("top", "nodes", "--no-headers"), "kubectl top still works", 300)


def test_kubeadmins_rights_end_with_the_secret_inside(place: Place) -> None:
    place.logs_in()
    place.is_known_as("kube:admin")
    place.guest.kubectl("delete", "secret", "kubeadmin", "-n", "kube-system")
    eventually_sync(place.powerless, "the rights are gone", 300)

    def forgotten() -> bool:
        names = {one["metadata"]["name"] for one in place.management.get("secrets", "-n", NS)["items"]}
        return f"{CLUSTER}-kubeadmin-password" not in names

    eventually_sync(forgotten, "and the password", 300)


def test_users_of_a_file_log_in_and_the_condition_says_so(place: Place) -> None:
    data = {"htpasswd": base64.b64encode(f"alice:{HASH}\n".encode()).decode()}
    metadata = {"name": "people", "namespace": NS}
    place.management.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    provider = {"name": "people", "type": "HTPasswd", "htpasswd": {"fileData": {"name": "people"}}}
    patch = {"spec": {"configuration": {"oauth": {"identityProviders": [provider]}}}}
    place.management.kubectl("patch", "hostedcluster", CLUSTER, "-n", NS, "--type=merge", "-p", json.dumps(patch))

    place.logs_in("-u", "alice", "-p", PASSWORD)
    place.is_known_as("alice")
    eventually_sync(
        lambda: condition(place.management, CLUSTER, "ValidIDPConfiguration").get("status") == "True", "it is told", 300
    )
    eventually_sync(lambda: "kubeadminPassword" not in place.status(), "and no password of kubeadmin", 300)


# A base domain of one's own, in a second hosted cluster with one machine


def test_a_base_domain_leads_to_the_cluster_once_its_owner_made_the_record(management: Cluster) -> None:
    name, zone = "own", Zone(management, "hypershift.lab")
    hosted, outside = f"{NS}-{name}", Outside(management, management.kubeconfig.parent)
    access = ("--kubeconfig", str(management.kubeconfig))

    def history() -> str:
        versions = management.get("hostedcluster", name, "-n", NS)["status"]["version"]["history"]
        return str(versions[0]["state"])

    if kept(management, name):
        management.kubectl("delete", "service", f"{name}-apps", "-n", hosted, "--ignore-not-found")
        if history() == "Completed":
            hcp("destroy", "cluster", "kubevirt", "--name", name, *access)
    zone.publish()
    if not kept(management, name):
        image = pushed(management, "release-1.36-ingress")
        create(management, name, 1, "--release-image", image, "--base-domain", zone.name)
    hcp("wait", "cluster", name, "--control-plane", "--timeout", "20m", *access)
    guest = guest_of(management, management.kubeconfig.parent, name)
    eventually_sync(lambda: len(guest.ready_nodes()) == 1, "its node is ready", LONG)

    def told(words: str) -> str | None:
        said = str(condition(management, name, "Progressing").get("message"))
        return said if words in said else None

    eventually_sync(lambda: told(f"make a Service {name}-apps of type LoadBalancer"), "the first thing to do", LONG)
    assert history() == "Partial"

    def degraded() -> bool:
        (one,) = [one for one in guest.get("co", "ingress")["status"]["conditions"] if one["type"] == "Degraded"]
        return (one["status"], one["reason"]) == ("True", "CanaryChecksRepetitiveFailures")

    eventually_sync(degraded, "and the operator inside says so", 300)

    router = guest.get("service", "router-nodeport-default", "-n", "openshift-ingress")["spec"]["ports"]
    ports = {one["name"]: one["nodePort"] for one in router}
    management.apply(documents.apps_service(name, hosted, ports["https"], ports["http"]))
    said = eventually_sync(lambda: told("make the DNS record: "), "the record to make", 600)
    record = said.partition("make the DNS record: ")[2].strip()
    assert record.startswith(f"*.apps.{name}.{zone.name}. IN A "), record
    assert record in hcp("status", name, "-n", NS, *access).stdout
    front = management.get("service", f"{name}-apps", "-n", hosted)["metadata"]["annotations"]
    assert front["external-dns.alpha.kubernetes.io/hostname"] == f"*.apps.{name}.{zone.name}"
    assert history() == "Partial"

    zone.publish(record)
    hcp("wait", "cluster", name, "--timeout", "20m", *access)
    eventually_sync(lambda: history() == "Completed", "the version is reached", 300)
    host, trust = f"canary-openshift-ingress-canary.apps.{name}.{zone.name}", authority(management, hosted)
    healthy = "Healthcheck requested\n200"
    eventually_sync(lambda: outside.curl(f"https://{host}/", trust) == healthy, "the canary, from outside", 300)
