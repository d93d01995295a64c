"""OpenLDAP's server with a few people in it, reached by TLS only."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.api_server import free_port

from hcp import payload, pki

BASE = "dc=example,dc=com"
READER, READER_PASSWORD = f"cn=reader,{BASE}", "what-the-reader-knows"
# Its password never leaves the directory but by a login.
PERSON, PASSWORD = "erin", "what-only-erin-knows"
_ENTRIES = f"""dn: {BASE}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,{BASE}
objectClass: organizationalUnit
ou: people

dn: {READER}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: {READER_PASSWORD}

dn: uid={PERSON},ou=people,{BASE}
objectClass: inetOrgPerson
uid: {PERSON}
cn: Erin Example
sn: Example
mail: {PERSON}@example.com
employeeType: staff
userPassword: {PASSWORD}

dn: uid=guest,ou=people,{BASE}
objectClass: inetOrgPerson
uid: guest
cn: A Guest
sn: Guest
employeeType: visitor
userPassword: {PASSWORD}
"""


class Directory:
    """Runs until stopped. Nobody may search it without a name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "ldap"
        self.port = free_port()
        self.ca = pki.new_ca("directory-ca")
        self.log = self._folder / "slapd.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """As OpenShift's API takes it; visitors do not count."""
        return f"ldaps://127.0.0.1:{self.port}/ou=people,{BASE}?uid?sub?(employeeType=staff)"

    def start(self) -> None:
        parts = payload.ensure(["test-slapd"])["test-slapd"]
        (self._folder / "entries").mkdir(parents=True)
        leaf = pki.issue(self.ca, "directory", ips=("127.0.0.1",), usage="server")
        (self._folder / "tls.crt").write_bytes(leaf.cert_pem)
        (self._folder / "tls.key").write_bytes(leaf.key_pem)
        schemas = "".join(f'include "{parts}/schema/{one}.schema"\n' for one in ("core", "cosine", "inetorgperson"))
        config = self._folder / "slapd.conf"
        config.write_text(
            f'{schemas}pidfile "{self._folder}/pid"\ndisallow bind_anon\nrequire authc\n'
            f'TLSCertificateFile "{self._folder}/tls.crt"\nTLSCertificateKeyFile "{self._folder}/tls.key"\n'
            f'database ldif\nsuffix "{BASE}"\ndirectory "{self._folder}/entries"\n'
            "access to attrs=userPassword by anonymous auth by * none\naccess to * by users read by * none\n"
        )
        (self._folder / "entries.ldif").write_text(_ENTRIES)
        program = str(parts / "bin" / "slapd")
        fill = [program, "-T", "add", "-f", str(config), "-l", str(self._folder / "entries.ldif")]
        subprocess.run(fill, check=True, capture_output=True, timeout=60)
        serve = [program, "-d", "stats", "-f", str(config), "-h", f"ldaps://127.0.0.1:{self.port}"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(serve, stdout=log, stderr=log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
