"""`configuration.image`: which registries the guest may use, and whom it trusts there."""

from __future__ import annotations

from hcp.api.configuration.references import named
from hcp.api.schema import MAX_NAME, Schema, array, boolean, obj, rule, string

_LABEL = "[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
_SCOPE = rf"^(\*(\.{_LABEL})+|{_LABEL}(\.{_LABEL})*(:[0-9]+)?(/[a-z0-9]+([-._]+[a-z0-9]+)*)*)$"


def image() -> Schema:
    scopes = array(
        string(min_len=1, max_len=256, pattern=_SCOPE),
        "Registries, repositories, or hosts with a leading *.",
        max_items=1024,
    )
    sources = obj(
        {
            "insecureRegistries": scopes,
            "blockedRegistries": scopes,
            "allowedRegistries": scopes,
            "containerRuntimeSearchRegistries": array(
                string(max_len=MAX_NAME), "Where short names are looked up.", min_items=1, max_items=64, unique=True
            ),
        },
        "Which registries nodes and builds may use.",
        rules=[
            rule(
                "!has(self.blockedRegistries) || !has(self.allowedRegistries)",
                "only one of blockedRegistries and allowedRegistries may be set",
            )
        ],
    )
    importable = obj(
        {
            "domainName": string("Host of a registry.", max_len=MAX_NAME),
            "insecure": boolean("Whether it is asked without TLS."),
        }
    )
    fields = {
        "allowedRegistriesForImport": array(importable, "Registries users may import from.", max_items=256),
        "externalRegistryHostnames": array(
            string(max_len=MAX_NAME), "Names under which the guest's registry is known.", max_items=64
        ),
        "additionalTrustedCA": named("ConfigMap with CAs by registry host."),
        "registrySources": sources,
    }
    return obj(fields, "Where images may come from; a change rolls nodes.")


def image_content_sources() -> Schema:
    mirrors = array(string(max_len=255), "Where the same images are found.", max_items=255, unique=True)
    fields = {"source": string("Repository as images name it.", min_len=1, max_len=255), "mirrors": mirrors}
    entry = obj(fields, required=("source",))
    return array(entry, "Mirrors the nodes use; a change rolls nodes.", max_items=255)
