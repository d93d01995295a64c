"""Image references in upstream manifests."""

from __future__ import annotations

import pytest

from hcp.errors import HcpError
from hcp.payload.builders.kubevirt import with_placeholders
from hcp.payload.manifests import image_names, with_images

_TEXT = 'image: hcp-image:virt-operator\nvalue: "hcp-image:virt-api"\nagain: hcp-image:virt-api\n'


def test_every_placeholder_is_replaced() -> None:
    filled = with_images(_TEXT, {"virt-operator": "r/o@sha256:1", "virt-api": "r/a@sha256:2"})
    assert filled == 'image: r/o@sha256:1\nvalue: "r/a@sha256:2"\nagain: r/a@sha256:2\n'


def test_an_image_that_is_not_there_is_named() -> None:
    assert image_names(_TEXT) == {"virt-operator", "virt-api"}
    with pytest.raises(HcpError, match="virt-api"):
        with_images(_TEXT, {"virt-operator": "x"})


def test_the_kubevirt_operator_gets_an_image_and_knows_the_others() -> None:
    stock = {"name": "VIRT_OPERATOR_IMAGE", "value": "/virt-operator:v1"}
    version = {"name": "KUBEVIRT_VERSION", "value": "v1"}
    pod = {"containers": [{"image": "/virt-operator:v1", "env": [stock, version]}]}
    deployment = with_placeholders({"kind": "Deployment", "spec": {"template": {"spec": pod}}})
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    env = {variable["name"]: variable["value"] for variable in container["env"]}
    assert container["image"] == env["VIRT_OPERATOR_IMAGE"] == "hcp-image:virt-operator"
    assert env["VIRT_LAUNCHER_IMAGE"] == "hcp-image:virt-launcher"
    assert env["KUBEVIRT_VERSION"] == "v1"
    assert with_placeholders({"kind": "Namespace"}) == {"kind": "Namespace"}
