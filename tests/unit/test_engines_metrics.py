"""Engines' own metrics: read under every name that versions used, added up, and told apart over time."""

from __future__ import annotations

import pytest

from cachewright.engines.metrics import PrefixCounts, has_no_hits, read_counts
from cachewright.engines.settings import Engine

VLLM = """# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m, n"} 1000.0
vllm:prefix_cache_queries_total{engine="1",model_name="m, n"} 1e3
vllm:prefix_cache_hits_total{engine="0",model_name="m, n"} 500.0
vllm:prefix_cache_hits_total{engine="1",model_name="m, n"} 100.0
vllm:prefix_cache_queries_created{engine="0",model_name="m, n"} 1.7e+09
vllm:cache_config_info{block_size="16",enable_prefix_caching="True",engine="0"} 1.0
vllm:time_to_first_token_seconds_bucket{le="+Inf"} NaN
"""
SGLANG = """sglang:prompt_tokens_total{model_name="m"} 4096.0
sglang:cached_tokens_total{model_name="m",cache_source="device"} 1000.0
sglang:cached_tokens_total{model_name="m",cache_source="host"} 24.0
sglang:cache_hit_rate{model_name="m"} 0.9
"""


@pytest.mark.parametrize(
    ("engine", "text", "counts"),
    [
        (Engine.VLLM, VLLM, PrefixCounts(600, 2000, is_on=True)),
        (Engine.VLLM, VLLM.replace('"True"', '"False"'), PrefixCounts(600, 2000, is_on=False)),
        (Engine.VLLM, VLLM.replace("vllm:prefix", "vllm:gpu_prefix"), PrefixCounts(600, 2000, is_on=True)),
        (Engine.SGLANG, SGLANG, PrefixCounts(1024, 4096)),
        (Engine.SGLANG, "sglang:cache_hit_rate 0.25\n", PrefixCounts(gauge=0.25)),
        (
            Engine.TENSORRT_LLM,
            "trtllm_prompt_tokens_total 10\ntrtllm_prompt_cached_tokens_total 4\n",
            PrefixCounts(4, 10),
        ),
        (Engine.TENSORRT_LLM, 'trtllm_kv_cache_hit_rate{model="m"} 0.5', PrefixCounts(gauge=0.5)),
        (
            Engine.TRITON,
            'nv_cache_num_hits_per_model{model="a"} 3\nnv_cache_num_misses_per_model{model="a"} 9\n',
            PrefixCounts(3, 12),
        ),
    ],
    ids=["vllm", "off", "vllm-older", "sglang", "sglang-gauge", "trtllm", "trtllm-gauge", "triton"],
)
def test_each_engine_is_read(engine: Engine, text: str, counts: PrefixCounts) -> None:
    """Samples of one name are added up over their labels."""
    assert read_counts(engine, text) == counts


@pytest.mark.parametrize("engine", list(Engine))
def test_nothing_is_made_up(engine: Engine) -> None:
    """What says nothing of a prefix cache gives no counts, not zeroes."""
    assert read_counts(engine, "") is None
    assert read_counts(engine, "<html>\nup 1\n%$ nonsense {{{\n") is None


def test_rates_are_of_what_was_asked() -> None:
    """Nothing asked is no rate; two engines count together; a restart begins anew."""
    assert PrefixCounts().rate is None
    assert PrefixCounts(1, 4).rate == 0.25
    assert (PrefixCounts(1, 4) + PrefixCounts(3, 4)).rate == 0.5
    assert (PrefixCounts(gauge=0.2) + PrefixCounts(gauge=0.4)).rate == pytest.approx(0.3)
    assert (PrefixCounts(is_on=True) + PrefixCounts(is_on=False)).is_on is False
    assert PrefixCounts(5, 10).since(PrefixCounts(1, 4)).rate == pytest.approx(4 / 6)
    assert PrefixCounts(1, 2).since(PrefixCounts(5, 10)) == PrefixCounts(1, 2)


def test_no_hits_needs_traffic() -> None:
    """A cache is not blamed before enough was asked of it, nor after one hit."""
    assert not has_no_hits(Engine.VLLM, PrefixCounts(0, 19_999))
    assert has_no_hits(Engine.VLLM, PrefixCounts(0, 20_000))
    assert not has_no_hits(Engine.VLLM, PrefixCounts(16, 20_000))
    assert has_no_hits(Engine.TRITON, PrefixCounts(0, 100))
