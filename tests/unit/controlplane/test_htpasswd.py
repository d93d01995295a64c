from __future__ import annotations

import re

from hcp.controlplane import htpasswd


def test_passwords_have_the_form_that_people_know_and_are_never_the_same() -> None:
    drawn = {htpasswd.new_password() for _ in range(100)}
    assert len(drawn) == 100
    assert all(re.fullmatch(r"[A-Za-z2-9]{5}-[A-Za-z2-9]{5}-[A-Za-z2-9]{5}-[A-Za-z2-9]{5}", one) for one in drawn)


def test_an_equal_password_of_a_cluster_has_an_equal_hash() -> None:
    assert htpasswd.hashed("one", "uid") == htpasswd.hashed("one", "uid")
    assert htpasswd.hashed("one", "uid") != htpasswd.hashed("one", "other")
    assert "one" not in htpasswd.hashed("one", "uid")


def test_what_is_wrong_with_a_file_is_told_without_its_hashes() -> None:
    content = b"alice:$2y$05$secret\n\nbob:plain-secret\ncarol\ndave:$2y$20$secret\n"
    found = htpasswd.problems(content)
    assert len(found) == 3
    assert "'bob'" in found[0] and "line 4" in found[1] and "'dave'" in found[2]
    assert "secret" not in " ".join(found)
    assert htpasswd.problems(b"\n") == ["its file has no users"]
