"""Which language a question is in, as far as the guard has word lists. Pure; asked before embedding too.

Told by its function words. Languages without a lexicon are listed only so that theirs are not mistaken for
one of ours. A text in another script, of words that nobody lists, or that two of our languages claim alike,
has no language here: the guard cannot read it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cachewright.policy.guard_words import Kind, Token, tokens_of
from cachewright.policy.lexicons import LEXICONS
from cachewright.policy.lexicons.lexicon import words

_OTHERS: Final[Mapping[str, frozenset[str]]] = {
    "it": words(
        "il lo gli le di da del della dei delle dal nel nella per che chi come cosa quale quando dove perché quanto è "
        "sono ho hai ha abbiamo posso può devo si mi ti ci un una uno e o ma non con su più mio mia al alla"
    ),
    "pt": words(
        "o os as um uma do da dos das no na nos nas ao à em de para por com que qual quais quem quando onde como "
        "porque é são está estou tem tenho posso pode devo eu você meu minha e ou mas não mais se seu sua"
    ),
    "nl": words(
        "de het een van ik je jij u mijn jouw zijn is ben heb heeft kan kun kunnen moet wil hoe wat waar wanneer "
        "waarom wie welke en of maar niet geen met voor naar op in aan bij uit te er dit dat deze die om als mij"
    ),
    "sv": words(
        "och att det som en ett den jag du han hon vi ni mig min mitt är var har kan ska hur vad när vem varför "
        "till från med för på av inte om eller men"
    ),
    "da": words(
        "og at det som en et den jeg du han hun vi mig min mit er var har kan skal hvordan hvad hvor hvornår hvem "
        "hvorfor til fra med for på af ikke om eller men"
    ),
    "pl": words(
        "jak co gdzie kiedy dlaczego kto czy ile jest są mam mogę można nie tak i w z na do od po za ze się mój moje "
        "to ten ta dla o jaki jaka jakie który"
    ),
    "cs": words(
        "jak co kde kdy proč kdo kolik je jsou mám mohu můžu se si v z na do od pro že ne ano můj moje tento"
    ),
    "ro": words(
        "cum ce unde când cine cât este sunt am pot poate și sau dar nu în la de pe cu din pentru un o mea meu"
    ),
    "tr": words(
        "nasıl ne nerede zaman neden kim kaç bir bu şu ve veya ile için mi mı mu mü var yok değil ben benim"
    ),
    "id": words(
        "bagaimana apa dimana kapan mengapa siapa berapa yang di ke dari untuk dengan dan atau tidak saya ini itu"
    ),
    "vi": words("làm thế nào gì ở đâu khi tại sao ai bao nhiêu là của và hoặc không tôi có thể cho một này"),
    "fi": words("miten mikä mitä missä milloin miksi kuka kuinka on ovat voi voin ei ja tai minun tämä se"),
    "hu": words("hogyan mi mit hol mikor miért ki hány van vannak nem és vagy a az egy hogy ez lehet"),
    "ca": words("el la els les un una de del que què qui com quan on per és són amb no i o meu meva puc"),
    "la": words("et in est non ad cum quid quod qui quae ut si sed ex ab per sunt esse"),
}
"""Function words of languages without a lexicon."""

_FUNCTION_WEIGHT: Final = 2
_TELLING_WEIGHT: Final = 1
_STRAY_LETTERS: Final = 1
"""Letters of another script that may stand by themselves, as in `TGF-β`; a longer word cannot be read."""


def _weights() -> dict[str, list[tuple[str, int]]]:
    weights: dict[str, list[tuple[str, int]]] = {}
    for code, lexicon in LEXICONS.items():
        for word in lexicon.function_words | lexicon.contractions.keys():
            weights.setdefault(word, []).append((code, _FUNCTION_WEIGHT))
        for word in lexicon.telling_words - lexicon.function_words:
            weights.setdefault(word, []).append((code, _TELLING_WEIGHT))
    for code, function_words in _OTHERS.items():
        for word in function_words:
            weights.setdefault(word, []).append((code, _FUNCTION_WEIGHT))
    return weights


_WEIGHTS: Final[Mapping[str, Sequence[tuple[str, int]]]] = _weights()
"""For each word, the languages it tells, and how well."""


def language_of(text: str) -> str | None:
    """Return an ISO 639-1 code of `LEXICONS`, or None where there is no lexicon or the language cannot be told."""
    return language_of_tokens(tokens_of(text))


def language_of_tokens(tokens: Iterable[Token]) -> str | None:
    """Return the language of a text that was taken apart already."""
    spelt = [token.text for token in tokens if token.kind is Kind.WORD]
    if any(_is_of_another_script(word) for word in spelt):
        return None
    scores = dict.fromkeys((*LEXICONS, *_OTHERS), 0)
    for word in spelt:
        for piece in _pieces(word):
            for code, weight in _WEIGHTS.get(piece, ()):
                scores[code] += weight
    best = max(scores.values())
    claimed = [code for code in LEXICONS if best and scores[code] == best]
    # A language without a lexicon wins by a word of its own, such as its negation, never by a draw.
    return claimed[0] if len(claimed) == 1 else None


def _pieces(word: str) -> tuple[str, ...]:
    head, apostrophe, rest = word.partition("'")
    return (word, f"{head}'", rest) if apostrophe and rest else (word,)


def _is_of_another_script(word: str) -> bool:
    return not word.isascii() and any(map(_is_foreign, re.split("['-]", word)))


def _is_foreign(piece: str) -> bool:
    latin = sum(unicodedata.name(each, "").startswith("LATIN") for each in piece)
    return latin < len(piece) and (latin > 0 or len(piece) > _STRAY_LETTERS)
