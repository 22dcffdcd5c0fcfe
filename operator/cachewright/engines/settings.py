"""What can be set of an engine's prefix cache, in words that are the same for all engines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Engine(StrEnum):
    """Engines whose prefix cache can be set."""

    VLLM = "VLLM"
    SGLANG = "SGLang"
    TENSORRT_LLM = "TensorRTLLM"
    TRITON = "Triton"


class HashAlgorithm(StrEnum):
    """How vLLM names blocks; the CBOR forms give the same names in other processes and languages."""

    SHA256 = "SHA256"
    SHA256_CBOR = "SHA256CBOR"
    XXHASH = "XXHash"
    XXHASH_CBOR = "XXHashCBOR"


class Eviction(StrEnum):
    """Which blocks go first when memory is short."""

    LRU = "LRU"
    LFU = "LFU"
    SLRU = "SLRU"
    PRIORITY = "Priority"
    TLRU = "TLRU"


class Connector(StrEnum):
    """Who moves blocks to and from memory beyond the GPU's."""

    NATIVE = "Native"
    LMCACHE = "LMCache"


@dataclass(frozen=True, slots=True)
class PrefixSettings:
    """Settings of one engine's prefix cache; None leaves the engine's own default."""

    block_size: int | None = None
    """Tokens in a block (vLLM), a page (SGLang), `tokens_per_block` (TensorRT-LLM)."""
    hash_algorithm: HashAlgorithm | None = None
    eviction: Eviction | None = None
    gpu_memory_share: float | None = None
    """Share of the GPU's memory that the engine may take, above 0 up to 1."""
    host_memory_bytes: int | None = None
    """Size of a second tier in the host's memory."""
    connector: Connector | None = None
    """Who serves the second tier; only with `host_memory_bytes`."""
    disk_bytes: int | None = None
    disk_path: str | None = None
    events_endpoint: str | None = None
    """ZeroMQ endpoint that block events are published at, such as `tcp://*:5557`."""
    report_cached_tokens: bool = True
    """True: answers say in their usage how many tokens came from the cache."""
    response_cache_bytes: int | None = None
    """Size of Triton's response cache."""
    extra_arguments: tuple[str, ...] = ()
    """Appended as they are."""
    suppressed_arguments: frozenset[str] = frozenset()
    """Flags of ours that are left out, for engines that differ from what we know."""
