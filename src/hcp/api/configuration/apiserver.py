"""`configuration.apiServer`: certificates, audit and TLS of the guest's API server."""

from __future__ import annotations

from hcp.api.configuration.references import named
from hcp.api.schema import MAX_NAME, Schema, array, obj, string

AUDIT_PROFILES = ("Default", "WriteRequestBodies", "AllRequestBodies", "None")
TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")


def api_server() -> Schema:
    fields = {
        "servingCerts": _serving_certs(),
        "clientCA": named("ConfigMap with further CAs for client certificates."),
        "additionalCORSAllowedOrigins": array(
            string(max_len=2048), "Origins that may call the API from a browser, as patterns.", max_items=256
        ),
        "audit": _audit(),
        "encryption": obj(
            {"type": string("How resources are encrypted.", enum=("", "identity", "aescbc", "aesgcm"))},
            "How resources are encrypted at rest; spec.secretEncryption decides in a hosted cluster.",
        ),
        "tlsSecurityProfile": _tls(),
    }
    return obj(fields, "Settings of the API server.")


def _serving_certs() -> Schema:
    entry = obj(
        {
            "names": array(string(max_len=MAX_NAME), "Host names this certificate answers.", max_items=64),
            "servingCertificate": named("Secret of type kubernetes.io/tls."),
        }
    )
    return obj(
        {"namedCertificates": array(entry, "Certificates for further host names.", max_items=32)},
        "Certificates the API server shows.",
    )


def _audit() -> Schema:
    custom = obj(
        {
            "group": string("Group whose users the profile is for.", min_len=1, max_len=MAX_NAME),
            "profile": string("What is written for them.", enum=AUDIT_PROFILES),
        },
        required=("group", "profile"),
    )
    fields = {
        "profile": string("What is written for everybody else.", enum=AUDIT_PROFILES, default="Default"),
        "customRules": array(custom, "Profiles for members of groups.", max_items=64, keys=("group",)),
    }
    return obj(fields, "Which requests are written to the audit log.", default={"profile": "Default"})


def _tls() -> Schema:
    empty = {name: _nullable(obj({}, f"The {name} profile has no settings.")) for name in ("old", "modern")}
    custom = obj(
        {
            "ciphers": array(string(max_len=256), "Ciphers by their OpenSSL names.", max_items=64),
            "minTLSVersion": string("Lowest version.", enum=TLS_VERSIONS),
        },
        "Settings of the profile Custom.",
    )
    fields = {
        "type": string("Which profile.", enum=("Old", "Intermediate", "Modern", "Custom")),
        **empty,
        "intermediate": _nullable(obj({}, "The intermediate profile has no settings.")),
        "custom": _nullable(custom),
    }
    return obj(fields, "TLS versions and ciphers.")


def _nullable(schema: Schema) -> Schema:
    return {**schema, "nullable": True}
