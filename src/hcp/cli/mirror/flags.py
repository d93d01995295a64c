"""Flags of `mirror` and `mirror delete`; names and defaults are those of oc-mirror."""

from __future__ import annotations

from hcp.cli.engine.command import Flag

_REGISTRY, _WORK, _NONE = "Registry", "Work", "this program needs no such thing"
CONFIG = Flag("config", "string", "", "file with the image set configuration", short="c", metavar="file")
WORKSPACE = Flag("workspace", "string", "", "folder for what is written: file://DIR", metavar="file://dir")
DRY_RUN = Flag("dry-run", "bool", False, "only write down what would be mirrored, and what of it is missing")
COMMON = (
    Flag("v2", "bool", True, "the only version there is; accepted because oc mirror needs it"),
    Flag("authfile", "string", "", "file with logins (default: $REGISTRY_AUTH_FILE, podman's auth.json, docker's "
         "config.json)", metavar="file", group=_REGISTRY),
    Flag("ca", "string", "", "file with CAs that certificates may come from, besides the system's and those in "
         "certs.d of podman and docker", metavar="file", group=_REGISTRY),
    Flag("dest-tls-verify", "bool", True, "false: the target may have any certificate, or no TLS", group=_REGISTRY),
    Flag("src-tls-verify", "bool", True, "false: sources may have any certificate, or no TLS", group=_REGISTRY),
    Flag("update-url", "string", "", "the update graph: a server's URL, a file, or docker://IMAGE (default: "
         "$UPDATE_URL_OVERRIDE, else OpenShift's server)", metavar="place", group=_REGISTRY),
    Flag("retry-times", "int", 2, "how often a source that does not answer is asked again", group=_WORK),
    Flag("retry-delay", "duration", 1_000_000_000, "pause before the first of these; later ones grow", group=_WORK),
    Flag("parallel-images", "int", 4, "how many images are copied at once", group=_WORK),
    Flag("parallel-layers", "int", 5, "how many layers of an image are copied at once", group=_WORK),
    Flag("image-timeout", "duration", 600_000_000_000, "the longest one image may take", group=_WORK),
    Flag("max-nested-paths", "int", 0, "for registries that allow so many parts of a path only; 0: any number",
         group=_WORK),
    Flag("cache-dir", "string", "", "folder for blobs between registries and archives (default: $HOME)",
         metavar="dir", group=_WORK),
    Flag("log-level", "string", "info", "how much to tell", choices=("info", "debug", "trace", "error"), group=_WORK),
    Flag("port", "int", 55000, "", short="p", unused=_NONE, hidden=True),
    Flag("rootless-storage-path", "string", "", "", unused=_NONE, hidden=True),
    Flag("loglevel", "string", "", "", unused="it is called --log-level", hidden=True),
)  # fmt: skip
