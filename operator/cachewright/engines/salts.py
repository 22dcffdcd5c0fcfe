"""Which engines keep prompts apart by `cache_salt`, since which version, and on which paths. Pure.

vLLM takes the field since 0.9 (its pull request 17045). SGLang took it for long without heeding it: the
scheduler has passed it on since 0.5.11 (pull request 23300; seen in the sources of 0.5.10 and 0.5.11).
TensorRT-LLM takes it since 1.1 (pull request 7106), for chats only, and refuses fields that it does not know.
Triton's response cache knows no tenant at all. Called by reconcile and for the gateway's policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachewright.engines.settings import Engine
from cachewright.engines.versions import EngineVersion

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
RESPONSES: Final = "/v1/responses"


@dataclass(frozen=True, slots=True)
class SaltSupport:
    """What one engine does with salts."""

    since: EngineVersion
    paths: tuple[str, ...]
    """Paths on which it heeds them."""


SALTS: Final = {
    Engine.VLLM: SaltSupport(EngineVersion(0, 9), (CHAT, COMPLETIONS, RESPONSES)),
    Engine.SGLANG: SaltSupport(EngineVersion(0, 5, 11), (CHAT, COMPLETIONS, RESPONSES)),
    Engine.TENSORRT_LLM: SaltSupport(EngineVersion(1, 1), (CHAT,)),
}


def salt_paths(engine: Engine) -> tuple[str, ...]:
    """Return the paths on which an engine heeds salts; none where it never does."""
    support = SALTS.get(engine)
    return support.paths if support is not None else ()


def why_no_salt(engine: Engine, version: EngineVersion) -> str:
    """Say, as a sentence, why an engine does not keep tenants apart; empty where it does."""
    support = SALTS.get(engine)
    if support is None:
        return f"{engine} does not keep tenants apart by a salt; set tenantSalt: false to accept that"
    if version < support.since:
        return (
            f"{engine} {version} does not heed cache_salt, which came with {support.since};"
            " set tenantSalt: false to accept that tenants share its prefix cache"
        )
    return ""
