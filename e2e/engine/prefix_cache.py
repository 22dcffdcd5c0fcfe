"""The stand-in's prefix cache, with vLLM's semantics, so that salts and shared beginnings can be seen to act.

Full blocks only, each hashed with all before it; the salt counts into the first block; the last token is
always computed. Words stand for tokens. Called by `server.Engine`.
"""

import hashlib
import json
import re
from typing import Any, Final

from .answers import InvalidRequestError, Json, Reuse

MOST_SALT_CHARACTERS: Final = 128
NOT_IN_A_SALT: Final = frozenset("@/\\\0")
"""What vLLM refuses in `cache_salt`."""

_TOKENS: Final = re.compile(r"\w+|[^\w\s]")


class PrefixCache:
    """Blocks computed so far, by hash; without bound, as a test's prompts are few."""

    def __init__(self, block_size: int = 16) -> None:
        self.block_size = block_size
        self.queried_tokens = 0
        self.hit_tokens = 0
        self._blocks: set[bytes] = set()

    def use(self, body: Json) -> Reuse:
        """Look a prompt up and keep its blocks; raises InvalidRequestError for a salt that is none."""
        tokens = _TOKENS.findall(prompt_text(body))
        found, still = 0, True
        parent = salt_of(body).encode()
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            block = json.dumps(tokens[start : start + self.block_size]).encode()
            parent = hashlib.sha256(parent + b"\0" + block).digest()
            still = still and parent in self._blocks and start + self.block_size < len(tokens)
            found += self.block_size if still else 0
            self._blocks.add(parent)
        self.queried_tokens += len(tokens)
        self.hit_tokens += found
        return Reuse(len(tokens), found)

    def clear(self) -> None:
        """Forget all blocks."""
        self._blocks.clear()


def metrics(cache: PrefixCache | None, model: str) -> str:
    """Return what vLLM 0.32 says of its prefix cache at `/metrics`, under its names."""
    block_size = cache.block_size if cache is not None else 16
    config = f'block_size="{block_size}",enable_prefix_caching="{cache is not None}",engine="0"'
    lines = ["# TYPE vllm:cache_config_info gauge", f"vllm:cache_config_info{{{config}}} 1.0"]
    counts = {
        "vllm:prefix_cache_queries_total": cache.queried_tokens if cache is not None else 0,
        "vllm:prefix_cache_hits_total": cache.hit_tokens if cache is not None else 0,
    }
    for name, count in counts.items():
        lines += [f"# TYPE {name} counter", f'{name}{{engine="0",model_name="{model}"}} {count:.1f}']
    return "\n".join(lines) + "\n"


def salt_of(body: Json) -> str:
    """Return the request's salt; empty where it has none."""
    salt = body.get("cache_salt")
    if salt is None:
        return ""
    if not isinstance(salt, str) or not 0 < len(salt) <= MOST_SALT_CHARACTERS or NOT_IN_A_SALT & set(salt):
        raise InvalidRequestError("cache_salt must be 1 to 128 characters without @ / \\ and NUL")
    return salt


def prompt_text(body: Json) -> str:
    """Return a request's prompt in the order of chat templates: tools, then messages."""
    parts = [json.dumps(tool) for tool in body.get("tools") or []]
    parts += [f"{message.get('role')}: {_content(message)}" for message in body.get("messages") or []]
    return "\n".join([*parts, str(body.get("prompt") or "")])


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)
