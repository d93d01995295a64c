"""KubeVirt and CDI: their own operators install them; we apply the operators and say how they shall be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from hcp.api.manifests import Object
from hcp.local.addons.mutations import on_creation
from hcp.local.addons.storage import CLASS

COMPONENTS = ("manifest-kubevirt", "manifest-cdi")
KUBEVIRT_NAMESPACE = "kubevirt"
CDI_NAMESPACE = "cdi"
CONTROLLER = "virt-controller"
MACHINES_TAKEN = "Usable now: virtual machines. Their disks are made at once, and they start when KubeVirt is deployed"
# Raise it when `documents` changes: running clusters then get the new objects at the next `up`.
REVISION = 3
# Fifteen seconds without processor time are nothing unusual on one machine that does everything: a controller that
# gives up its lease after them ends, and waits longer every time before it starts again.
_PATIENT_LEASE = {
    "leader-elect-lease-duration": "60s",
    "leader-elect-renew-deadline": "45s",
    "leader-elect-retry-period": "10s",
}
# KubeVirt has its parts looked at 15 seconds after they began and then every 10 or 20, and most of them are
# made only after the API is ready: half a minute of a first run. Part → kind, and where it says that it has begun.
_BEGAN = {
    "virt-api": ("Deployment", "/apis/subresources.kubevirt.io/v1/healthz"),
    CONTROLLER: ("Deployment", "/healthz"),
    "virt-handler": ("DaemonSet", "/healthz"),
}


def documents(text: str) -> list[Object]:
    """The objects of an operator's manifest, cut to one node."""
    found = [obj for obj in yaml.load_all(text, Loader=_LOADER) if obj]
    for obj in found:
        if obj["kind"] == "Deployment":
            obj["spec"]["replicas"] = 1
            for container in obj["spec"]["template"]["spec"]["containers"]:
                _name_every_image(container)
                _be_patient(container)
    return found


def _be_patient(container: Object) -> None:
    """One machine does everything here; an operator that starts slowly while others build must not be killed for it."""
    for probe in (container.get("livenessProbe"), container.get("readinessProbe")):
        if probe:
            probe["timeoutSeconds"] = max(30, probe.get("timeoutSeconds", 1))
    if liveness := container.get("livenessProbe"):
        liveness["failureThreshold"] = 10


def _name_every_image(container: Object) -> None:
    """CDI's controller refuses to start unless an image for imports from oVirt is named. There is none in the payload:
    such an import fails, everything else works.
    """
    for variable in container.get("env") or ():
        if variable["name"] == "OVIRT_POPULATOR_IMAGE" and not variable.get("value"):
            variable["value"] = container["image"]


# The C loader reads these megabytes of CRDs ten times faster.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def manifest(artifact: Path) -> str:
    return (artifact / "manifests" / "op.yaml").read_text()


def kubevirt(*, emulation: bool) -> Object:
    """One replica of everything: there is one node."""
    developer: dict[str, Any] = {"featureGates": ["HotplugVolumes", "ExpandDisks"]}
    if emulation:
        developer["useEmulation"] = True
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": KUBEVIRT_NAMESPACE},
        "spec": {
            "imagePullPolicy": "IfNotPresent",
            "infra": {"replicas": 1},
            "workloadUpdateStrategy": {},
            "customizeComponents": {"flags": {"controller": _PATIENT_LEASE}, "patches": _early_looks()},
            "configuration": {"developerConfiguration": developer},
        },
    }


def without_instance_types(kubevirt: Object) -> Object:
    """Its operator makes those that it brings along, five a second, before it says that it is done: half a minute in
    which machines could start already. So on a new cluster they come after that.
    """
    configuration = {**kubevirt["spec"]["configuration"], "commonInstancetypesDeployment": {"enabled": False}}
    return {**kubevirt, "spec": {**kubevirt["spec"], "configuration": configuration}}


def _early_looks() -> list[Object]:
    """Whether a part has begun is asked every second until it says so, and never again."""
    return [_early_look(name, kind, path) for name, (kind, path) in _BEGAN.items()]


def _early_look(name: str, kind: str, path: str) -> Object:
    asked = {"httpGet": {"scheme": "HTTPS", "port": 8443, "path": path}, "timeoutSeconds": 10}
    container = {
        "name": name,
        "startupProbe": {**asked, "periodSeconds": 1, "failureThreshold": 600},
        "readinessProbe": {"initialDelaySeconds": 0},
    }
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    return {"resourceType": kind, "resourceName": name, "type": "strategic", "patch": json.dumps(patch)}


def cdi() -> Object:
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "CDI",
        "metadata": {"name": "cdi"},
        "spec": {
            "imagePullPolicy": "IfNotPresent",
            "infra": {"apiServerReplicas": 1, "deploymentReplicas": 1, "uploadProxyReplicas": 1},
            # Without HonorWaitForFirstConsumer: on one node there is no place to choose, and a disk's import need not
            # wait for a first launcher pod that only makes the choice.
            "config": {"featureGates": ["WebhookPvcRendering"]},
        },
    }


def direct_imports() -> list[Object]:
    """Imported disks go past the page cache.

    Volumes are files of this machine. Written through its cache, a disk needs twice as long, and then again while VMs
    boot: the kernel writes the gigabyte out beside them, and they read their disks directly. CDI does it by itself only
    after an import ran out of memory, as storage on a network may be slower this way.
    """
    claims = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["persistentvolumeclaims"]}
    source = "object.metadata.?annotations['cdi.kubevirt.io/storage.import.source'].hasValue()"
    path = '"/metadata/annotations/" + jsonpatch.escapeKey("cdi.kubevirt.io/storage.import.requiresDirectIo")'
    patch = f'[JSONPatch{{op: "add", path: {path}, value: "true"}}]'
    return on_creation("hcp-local-direct-imports", claims, ("import", source), patch)


def storage_profile() -> Object:
    """CDI does not know local-path: without this a DataVolume must spell out its access mode."""
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "StorageProfile",
        "metadata": {"name": CLASS},
        "spec": {
            "claimPropertySets": [{"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}],
            "cloneStrategy": "copy",
        },
    }
