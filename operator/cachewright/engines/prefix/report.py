"""From a log of requests to what its prompts share, what breaks that, and what mending it would bring.

Called by `cachewright prefix analyze`. The requests are played in their order against a model of the engine's
prefix cache (`blocks`), once as they were logged and once mended.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cachewright.engines.prefix.blocks import BlockCache, Reuse
from cachewright.engines.prefix.breakers import FIXES, Breaker, BreakerKind, find_breaker
from cachewright.engines.prefix.chat_log import LoggedRequest
from cachewright.engines.prefix.mending import Mending
from cachewright.engines.prefix.prompts import Prompt, render
from cachewright.engines.prefix.templates import Templates
from cachewright.engines.prefix.tokens import Tokenizer, split_tokens

MOST_GROUPS: Final = 50
"""Tenants or templates listed one by one; the rest is summed up."""


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """How the engine that is thought of is set."""

    block_size: int = 16
    """Tokens in a block."""
    capacity_tokens: int | None = None
    """Size of the engine's cache; None: without bound."""
    per_tenant: bool = True
    """True: each tenant has a salt of its own, so tenants share nothing."""


@dataclass(slots=True)
class Reused:
    """Prompts, and how much of them need not be computed."""

    requests: int = 0
    tokens: int = 0
    hit_tokens: int = 0

    def add(self, tokens: int, hit_tokens: int) -> None:
        """Count one prompt."""
        self.requests += 1
        self.tokens += tokens
        self.hit_tokens += hit_tokens

    @property
    def rate(self) -> float:
        """Share of the tokens that need not be computed, 0 to 1."""
        return self.hit_tokens / self.tokens if self.tokens else 0.0


@dataclass(slots=True)
class Broken:
    """One kind of breaker over the whole log."""

    kind: BreakerKind
    requests: int = 0
    lost_tokens: int = 0
    """Tokens of tools and system text behind it, which had to be computed anew."""
    lines: list[int] = field(default_factory=list)
    """Lines of the log that show it, the first few."""

    @property
    def fix(self) -> str:
        """What to change, in a sentence."""
        return FIXES[self.kind]


@dataclass(frozen=True, slots=True)
class PrefixReport:
    """What a log says about prefix caching."""

    settings: AnalysisSettings
    total: Reused
    shared: Reused
    """The same as if tenants shared their blocks."""
    mended: Reused
    """The same with the breakers mended."""
    by_tenant: dict[str, Reused]
    by_template: dict[str, Reused]
    breakers: list[Broken]
    """The costliest first."""

    def to_dict(self) -> dict[str, Any]:
        """Render as plain values for JSON; rates are 0 to 1, with 4 decimals."""
        return {
            "blockSize": self.settings.block_size,
            "cacheTokens": self.settings.capacity_tokens,
            "perTenant": self.settings.per_tenant,
            "total": _plain(self.total),
            "ifTenantsShared": _plain(self.shared),
            "ifMended": _plain(self.mended),
            "byTenant": {name: _plain(reused) for name, reused in self.by_tenant.items()},
            "byTemplate": {name: _plain(reused) for name, reused in self.by_template.items()},
            "breakers": [
                {
                    "kind": str(broken.kind),
                    "requests": broken.requests,
                    "lostTokens": broken.lost_tokens,
                    "lines": broken.lines,
                    "fix": broken.fix,
                }
                for broken in self.breakers
            ],
        }


def analyze(
    requests: Sequence[LoggedRequest],
    settings: AnalysisSettings,
    tokenize: Tokenizer = split_tokens,
    progress: Callable[[int], None] = lambda _done: None,
) -> PrefixReport:
    """Play a log against the cache; `progress` hears how many prompts were played, out of three times all."""
    player = _Player(settings, tokenize, progress)
    played = _play_as_logged(requests, player)
    return PrefixReport(
        settings,
        total=played.total,
        shared=player.play(played.prompts, played.names, per_tenant=False),
        mended=player.play([render(request) for request in played.mended()], played.names),
        by_tenant=_largest(played.by_tenant),
        by_template=_largest(played.by_template),
        breakers=_summed(played.found, tokenize),
    )


def mended(requests: Sequence[LoggedRequest], settings: AnalysisSettings) -> list[LoggedRequest]:
    """Return the requests as they could have been sent, with whatever breaks their prefixes mended."""
    return _play_as_logged(requests, _Player(settings, split_tokens, lambda _done: None)).mended()


@dataclass(slots=True)
class _Played:
    """What was seen of the requests as they were logged."""

    prompts: list[Prompt]
    names: list[str]
    total: Reused = field(default_factory=Reused)
    by_tenant: dict[str, Reused] = field(default_factory=lambda: defaultdict(Reused))
    by_template: dict[str, Reused] = field(default_factory=lambda: defaultdict(Reused))
    found: list[tuple[Prompt, Breaker]] = field(default_factory=list)

    def note(self, prompt: Prompt, name: str, reuse: Reuse, breaker: Breaker | None) -> None:
        self.by_tenant[prompt.request.tenant].add(reuse.tokens, reuse.hit_tokens)
        self.by_template[name].add(reuse.tokens, reuse.hit_tokens)
        if breaker is not None:
            self.found.append((prompt, breaker))

    def mended(self) -> list[LoggedRequest]:
        mending = Mending.learn(self.found)
        return [mending.mend(prompt.request) for prompt in self.prompts]


def _play_as_logged(requests: Sequence[LoggedRequest], player: _Player) -> _Played:
    prompts = [render(request) for request in requests]
    templates = Templates()
    played = _Played(prompts, [templates.name(prompt) for prompt in prompts])
    played.total = player.play(prompts, played.names, each=played.note)
    return played


Each = Callable[[Prompt, str, Reuse, Breaker | None], None]


class _Player:
    """Plays prompts in their order."""

    def __init__(
        self, settings: AnalysisSettings, tokenize: Tokenizer, progress: Callable[[int], None]
    ) -> None:
        self._settings = settings
        self._tokenize = tokenize
        self._progress = progress
        self._played = 0

    def play(
        self,
        prompts: Sequence[Prompt],
        names: Sequence[str],
        each: Each | None = None,
        per_tenant: bool | None = None,
    ) -> Reused:
        """Play prompts of the named templates against an empty cache; `each` hears of every one."""
        per_tenant = self._settings.per_tenant if per_tenant is None else per_tenant
        cache = BlockCache(self._settings.block_size, self._settings.capacity_tokens)
        total = Reused()
        latest = _Latest()
        for prompt, name in zip(prompts, names, strict=True):
            salt = prompt.request.model + "\x00" + (prompt.request.tenant if per_tenant else "")
            reuse, hashes = cache.use(self._tokenize(prompt.text), salt)
            total.add(reuse.tokens, reuse.hit_tokens)
            if each is not None:
                earlier = latest.like(reuse.last_block, (salt, name))
                breaker = find_breaker(earlier, prompt) if earlier else None
                each(prompt, name, reuse, breaker)
                latest.note(prompt, hashes, (salt, name))
            self._played += 1
            self._progress(self._played)
        return total


class _Latest:
    """The last prompt that held a block, and the last of each template."""

    def __init__(self) -> None:
        self._by_block: dict[bytes, Prompt] = {}
        self._by_template: dict[tuple[str, str], Prompt] = {}

    def like(self, last_block: bytes | None, template: tuple[str, str]) -> Prompt | None:
        """Return the prompt that the reuse came from, else the last one of the same template."""
        if last_block is not None and last_block in self._by_block:
            return self._by_block[last_block]
        return self._by_template.get(template)

    def note(self, prompt: Prompt, hashes: Iterable[bytes], template: tuple[str, str]) -> None:
        for block in hashes:
            self._by_block[block] = prompt
        self._by_template[template] = prompt


LINES_SHOWN: Final = 5


def _summed(found: Sequence[tuple[Prompt, Breaker]], tokenize: Tokenizer) -> list[Broken]:
    broken: dict[BreakerKind, Broken] = {}
    for prompt, breaker in found:
        one = broken.setdefault(breaker.kind, Broken(breaker.kind))
        one.requests += 1
        lost = prompt.text[breaker.offset : breaker.offset + breaker.lost_characters]
        one.lost_tokens += len(tokenize(lost))
        if len(one.lines) < LINES_SHOWN:
            one.lines.append(prompt.request.line)
    return sorted(broken.values(), key=lambda one: (-one.lost_tokens, one.kind))


def _largest(groups: dict[str, Reused]) -> dict[str, Reused]:
    counted = Counter({name: reused.tokens for name, reused in groups.items()})
    kept = {name: groups[name] for name, _ in counted.most_common(MOST_GROUPS)}
    others = Reused()
    for name, reused in groups.items():
        if name not in kept:
            others.requests += reused.requests
            others.tokens += reused.tokens
            others.hit_tokens += reused.hit_tokens
    return {**kept, "(others)": others} if others.requests else kept


def _plain(reused: Reused) -> dict[str, Any]:
    return {
        "requests": reused.requests,
        "tokens": reused.tokens,
        "hitTokens": reused.hit_tokens,
        "hitRate": round(reused.rate, 4),
    }
