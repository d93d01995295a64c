from hcp.ignition.disk_images import LIST, SCRIPT, UNIT, disk_images_document
from hcp.ignition.document import read_data_url

DIGEST = "sha256:" + "a" * 64


def test_images_of_another_registry_are_looked_for_on_the_disk() -> None:
    made = disk_images_document([f"r.example.com/team/pause@{DIGEST}", f"r.example.com/team/etcd@{DIGEST}"])
    files = {entry["path"]: entry for entry in made["storage"]["files"]}
    listed = read_data_url(files[LIST]["contents"]["source"]).decode().splitlines()
    assert listed == [f"r.example.com/team/etcd@{DIGEST}", f"r.example.com/team/pause@{DIGEST}"]
    assert files[SCRIPT]["mode"] == 0o755
    (unit,) = made["systemd"]["units"]
    assert unit["name"] == UNIT
    assert "After=containerd.service" in unit["contents"] and "Before=kubelet.service" in unit["contents"]


def test_names_of_the_disk_itself_cost_nothing() -> None:
    made = disk_images_document([f"registry.hcp.test:5000/hcp/pause@{DIGEST}"])
    assert made["storage"]["files"] == [] and made["systemd"]["units"] == []


def test_only_images_by_digest_can_be_known_again() -> None:
    assert disk_images_document(["r.example.com/team/pause:3"])["storage"]["files"] == []
