"""What machines fetch when they start: a token, the document it opens, and the user data that names both."""

from __future__ import annotations

import base64

from hcp.api import conditions as c
from hcp.api.names import LABEL_DOCUMENT_OF, MARK_IGNITION_REACHED
from hcp.api.paths import annotations_of, at, block, labels_of
from hcp.ignition import store
from hcp.ignition.hashes import hash_simple
from hcp.ignition.pointer import pointer
from hcp.ignition.tokens import Tokens, fresh, rotated, until_rotation
from hcp.kube.resources import SECRETS
from hcp.nodepool.config import GeneratedConfig, global_config
from hcp.nodepool.proxy import cluster_proxy
from hcp.nodepool.scope import HostedInputs, Learned, Object, Scope
from hcp.nodepool.secrets import TokenContent, read_tokens, token_name, token_secret, user_data_secret
from hcp.runtime import apply_if_changed
from hcp.runtime.conditions import Verdict


async def run(scope: Scope) -> Learned | None:
    config, inputs, now = scope.config, scope.inputs, scope.now
    if scope.paused or config is None or inputs is None:
        return None
    watches, client = scope.tools.watches, scope.ctx.client
    name = token_name(scope.name, config.target)
    # The cache may lag behind our own write of a moment ago: never make a second token without asking the server.
    known = watches.secrets.get(name, scope.hosted) or await client.get_or_none(SECRETS, name, scope.hosted)
    tokens = rotated(read_tokens(known) or fresh(now), now)
    document = store.document_secret(
        scope.hosted,
        scope.key,
        config.target,
        token=tokens.current,
        old_token=tokens.previous,
        payload=scope.payload,
        namespace=scope.ctx.namespace,
    )
    seen = watches.documents.get(document["metadata"]["name"], scope.ctx.namespace)
    reached = annotations_of(seen).get(MARK_IGNITION_REACHED) == "True"
    record = token_secret(scope.hosted, scope.pool, config.target, tokens, _content(scope, config, inputs), reached)
    # The token is remembered before it is handed out: a crash in between must not leave two of them.
    await apply_if_changed(client, watches.secrets, record)
    await apply_if_changed(client, watches.documents, document)
    older = watches.documents.get(store.older_secret_name(scope.hosted, scope.name, config.target), scope.ctx.namespace)
    if older is not None and labels_of(older).get(LABEL_DOCUMENT_OF) == scope.hosted:
        await client.delete(SECRETS, older["metadata"]["name"], scope.ctx.namespace, missing_ok=True)
    await apply_if_changed(client, watches.secrets, await _user_data(scope, config, tokens))
    said: dict[str, Verdict | None] = {
        c.VALID_GENERATED_PAYLOAD: (True, c.AS_EXPECTED, "Payload generated successfully")
    }
    if reached:
        said[c.REACHED_IGNITION_ENDPOINT] = (True, c.AS_EXPECTED, "")
    elif not scope.says(c.REACHED_IGNITION_ENDPOINT):
        said[c.REACHED_IGNITION_ENDPOINT] = (False, c.IGNITION_NOT_REACHED, "No machine has fetched its document yet")
    return Learned(said=said, again=until_rotation(tokens, now) + 1)


def _content(scope: Scope, config: GeneratedConfig, inputs: HostedInputs) -> TokenContent:
    return TokenContent(
        release=at(scope.pool, "spec.release.image", ""),
        release_version=scope.known_release().version,
        raw_config=config.raw,
        pull_secret_hash=hash_simple(inputs.pull_secret),
        trust_bundle_hash=hash_simple(inputs.trust_bundle),
        configuration_hash=hash_simple(global_config(block(scope.cluster, "spec.configuration"))),
    )


async def _user_data(scope: Scope, config: GeneratedConfig, tokens: Tokens) -> Object:
    authority = base64.b64decode(block(await scope.tools.watches.authority(), "data").get("ca.crt", ""))
    endpoint = str(at(scope.cluster, "status.ignitionEndpoint"))
    text = pointer(endpoint, authority, tokens.current, scope.key, config.target, cluster_proxy(scope))
    return user_data_secret(scope.hosted, scope.pool, config.target, scope.infra_id, text)
