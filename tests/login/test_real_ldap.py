"""People of a directory log in: OpenLDAP's server, dex, and a kube-apiserver that believes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import directory
from tests.support.directory import Directory
from tests.support.eventually import eventually
from tests.support.hosted_operator import mentions, says
from tests.support.login_place import BROWSER, NAME, Place, give

from hcp.kube import Client

pytestmark = pytest.mark.timeout(1800)


async def test_who_is_in_the_directory_logs_in_and_nothing_tells_a_password(
    begin: Callable[..., Any], admin: Client, tmp_path: Path
) -> None:
    people = Directory(tmp_path)
    people.start()
    await give(admin, "ConfigMap", "directory-ca", {"ca.crt": people.ca.cert_pem.decode()})
    ldap = {
        "url": people.url,
        "bindDN": directory.READER,
        "bindPassword": {"name": "reader"},
        "ca": {"name": "directory-ca"},
        "attributes": {"id": ["dn"], "email": ["mail"], "name": ["cn"], "preferredUsername": ["uid"]},
    }
    try:
        provider = {"name": "directory", "type": "LDAP", "mappingMethod": "claim", "ldap": ldap}
        place: Place = await begin(configuration={"oauth": {"identityProviders": [provider]}})
        await eventually(lambda: mentions(admin, NAME, "ValidIDPConfiguration", "reader"), "the Secret is missing")
        await give(admin, "Secret", "reader", {"bindPassword": directory.READER_PASSWORD})
        await eventually(lambda: says(admin, NAME, "ValidIDPConfiguration", "True"), "all is there")
        await place.serves()

        place.runner.env |= {
            "BROWSER": f"{sys.executable} {BROWSER} %s",
            "LOGIN_NAME": directory.PERSON,
            "LOGIN_PASSWORD": directory.PASSWORD,
        }
        await place.login("--web")
        await place.is_known_as(directory.PERSON)
        assert await place.kubectl("auth", "can-i", "get", "nodes") == "no", "rights are for others to give"

        for name, password in ((directory.PERSON, "wrong-words"), ("guest", directory.PASSWORD)):
            place.runner.env |= {"LOGIN_NAME": name, "LOGIN_PASSWORD": password}
            assert await place.turned_away(), f"{name} is not let in"

        said = place.hosted.log.read_text() + place.hosted.api_log.read_text()
        for secret in (directory.PASSWORD, directory.READER_PASSWORD, "wrong-words"):
            assert secret not in said, "no password is in any log"
    finally:
        people.stop()
