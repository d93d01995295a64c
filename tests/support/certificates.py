"""Asking for certificates as kubelets do."""

from __future__ import annotations

import base64
import ipaddress

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp import pki
from hcp.guest.csr import BOOTSTRAP_USER, CLIENT_SIGNER, SERVING_SIGNER
from hcp.kube import Client, load_config
from hcp.kube import resources as r


def request_for(name: str, *addresses: str) -> str:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{name}"),
        ]
    )
    made = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if addresses:
        entries = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        made = made.add_extension(x509.SubjectAlternativeName(entries), critical=False)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


async def send_request(
    server: ApiServer, client: Client, request: str, node: str, *addresses: str, user: str = BOOTSTRAP_USER
) -> None:
    """Ask as somebody, by default with the bootstrap credential that every node knows; with addresses, to serve."""
    directory = server.directory
    ca = pki.KeyPair((directory / "ca.crt").read_bytes(), (directory / "ca.key").read_bytes())
    pair = pki.issue(ca, user, usage="client")
    path = directory / "bootstrap.kubeconfig"
    path.write_text(yaml.safe_dump(pki.kubeconfig(server.url, ca.cert_pem, pair.cert_pem, pair.key_pem)))
    role = "system:node-bootstrapper"
    await client.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"test-{user}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
    )
    spec = {
        "request": request_for(node, *addresses),
        "signerName": SERVING_SIGNER if addresses else CLIENT_SIGNER,
        "usages": ["digital signature", "server auth" if addresses else "client auth"],
    }
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": request, "labels": {"asked": "by-a-node"}, "annotations": {"note": "kept"}},
        "spec": spec,
    }
    async with Client(load_config(path)) as node_client:
        await node_client.create(body)


async def ask_for_certificate(server: ApiServer, client: Client, request: str, node: str) -> str:
    """Ask, and say how it was answered."""
    await send_request(server, client, request, node)

    async def answered() -> str:
        found = await client.get(r.CSRS, request)
        verdict = str(found["status"]["conditions"][0]["type"])
        # What others wrote on the request is not lost by our answer.
        assert found["metadata"]["labels"] == {"asked": "by-a-node"}
        assert found["metadata"]["annotations"] == {"note": "kept"}
        return verdict

    return await eventually(answered)
