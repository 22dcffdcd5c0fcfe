"""The guard: which similar questions it keeps apart, and which it lets through."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachewright.api.guard import DEFAULT_GUARD, GuardCheck
from cachewright.policy.guard import GuardReason, refusals
from cachewright.policy.guard_language import language_of
from cachewright.policy.lexicons import LEXICONS
from cachewright.policy.lexicons.lexicon import SHORTEST_STEM, Lexicon

EVERY = tuple(GuardCheck)

APART = {
    GuardReason.NUMBERS: [
        ("How do I add 2 users?", "How do I add 3 users?"),
        ("Is there a 2 GB limit?", "Is there a 2 TB limit?"),
        ("Can I take two tablets?", "Can I take three tablets?"),
        ("Is it free for the first 30 days?", "Is it free for the first 30 hours?"),
        ("How much is it in dollars?", "How much is it in euros?"),
        ("What can I get for $50?", "What can I get for €50?"),
        ("Is the shop open on Monday?", "Is the shop open on Sunday?"),
        ("What happened on 4 May 1970?", "What happened on 4 June 1970?"),
        ("What was the weather yesterday?", "What was the weather today?"),
        ("Is it open at 9 am?", "Is it open at 9 pm?"),
        ("Is Python 3.1 supported?", "Is Python 3.10 supported?"),
        ("Is it colder than -5 °C?", "Is it colder than 5 °C?"),
        ("What is C# used for?", "What is C++ used for?"),
        ("Is x < 3 true for this?", "Is x > 3 true for this?"),
        ("Can I take vitamin B with it?", "Can I take vitamin D with it?"),
        ("When did World War I end?", "When did World War II end?"),
        ("What does 👍 mean here?", "What does 👎 mean here?"),
        ("Wie viel sind 2,5 Liter?", "Wie viel sind 25 Liter?"),
        ("Combien coûtent vingt tickets ?", "Combien coûtent trente tickets ?"),
        ("¿Cuánto cuestan cuarenta y dos entradas?", "¿Cuánto cuestan cuarenta entradas?"),
    ],
    GuardReason.NEGATION: [
        ("Can I run this as root?", "Can I not run this as root?"),
        ("Why does the pump start?", "Why doesn't the pump start?"),
        ("Why dont my alerts fire?", "Why do my alerts fire?"),
        ("Is it safe to drive after this?", "Is it never safe to drive after this?"),
        ("Do you repair phones?", "Do you only repair phones?"),
        ("Warum startet der Dienst?", "Warum startet der Dienst nicht?"),
        ("Pourquoi le moteur démarre ?", "Pourquoi le moteur ne démarre pas ?"),
        ("¿Por qué carga la página?", "¿Por qué no carga la página?"),
    ],
    GuardReason.ORDER: [
        ("How do I convert PDF to Word?", "How do I convert Word to PDF?"),
        ("Is there a train from Basel to Milan?", "Is there a train from Milan to Basel?"),
        ("How do I get to Leeds from here?", "How do I get from Leeds to here?"),
        ("Is zinc better than iron?", "Is iron better than zinc?"),
        ("Does France owe Germany money?", "Does Germany owe France money?"),
        ("How many dollars is a euro?", "How many euros is a dollar?"),
        ("Why did the bank buy the insurer?", "Why was the bank bought by the insurer?"),
        ("Can I read my manager's mail?", "Can my manager read my mail?"),
        ("Kann ich das Konto meiner Frau sehen?", "Kann meine Frau mein Konto sehen?"),
        ("Wie komme ich von Köln nach Bonn?", "Wie komme ich von Bonn nach Köln?"),
        ("Comment aller de Lyon à Nice ?", "Comment aller de Nice à Lyon ?"),
        ("¿Cómo paso de euros a pesos?", "¿Cómo paso de pesos a euros?"),
    ],
    GuardReason.ANTONYMS: [
        ("How do I enable the firewall?", "How do I disable the firewall?"),
        ("How do I turn the heating in the hall on?", "How do I turn the heating in the hall off?"),
        ("How do I turn off wifi on my phone?", "How do I turn on wifi on my phone?"),
        ("Should I eat before the test?", "Should I eat after the test?"),
        ("Is the trial free?", "Is the trial paid?"),
        ("Is this file compressed?", "Is this file uncompressed?"),
        ("What causes hypertension?", "What causes hypotension?"),
        ("Can my wife use it?", "Can my husband use it?"),
        ("Who is the owner?", "Who was the owner?"),
        ("What is new this week?", "What is new next week?"),
        ("Where is the US office?", "Where is us office?"),
        ("How do I pin a note?", "How do I unpin a note?"),
        ("Does every user see it?", "Does only one user see it?"),
        ("Wie schalte ich das Licht im Flur ein?", "Wie schalte ich das Licht im Flur aus?"),
        ("Ist das Ventil geöffnet?", "Ist das Ventil geschlossen?"),
        ("Comment activer le partage ?", "Comment désactiver le partage ?"),
        ("¿Cómo abro la cuenta?", "¿Cómo cierro la cuenta?"),
    ],
    GuardReason.NAMES: [
        ("How do I cancel my Netflix plan?", "How do I cancel my Spotify plan?"),
        ("Is there an office in Dublin?", "Is there an office in Prague?"),
    ],
    GuardReason.LANGUAGE: [
        ("How do I log in?", "Wie melde ich mich an?"),
        ("Как мне войти?", "Как мне войти в систему?"),
        ("Come posso cambiare la password?", "Come si cambia la mia password?"),
        ("zx qq", "zx qv"),
    ],
}

TOGETHER = [
    ("How do I reset my password?", "How can I reset my password?"),
    ("Is there a 2 GB limit?", "Is there a limit of two gigabytes?"),
    ("Is it 1,000 rows?", "Is it 1000 rows?"),
    ("What does $5 get me?", "What do 5 dollars get me?"),
    ("Is it twenty-five days?", "Is it 25 days?"),
    ("Do 2 million rows fit?", "Do 2,000,000 rows fit?"),
    ("What is the difference between a cat and a dog?", "What is the difference between a dog and a cat?"),
    ("Why isn't the lamp on?", "Why is the lamp not on?"),
    ("Should I update or not?", "Should I update?"),
    ("Is it only for members?", "Is it just for members?"),
    ("Who wrote the manual?", "Who was the manual written by?"),
    ("What does the server's log say?", "What does the server’s log say?"),  # noqa: RUF001
    ("Sind es 1.000 Zeilen?", "Sind es 1000 Zeilen?"),
    ("Sind es fünfundzwanzig Tage?", "Sind es 25 Tage?"),
    ("Est-ce que c'est 2,5 litres ?", "Est-ce bien 2.5 litres ?"),
    ("¿Son treinta y cinco días?", "¿Son 35 días?"),
]


@pytest.mark.parametrize(
    ("asked", "stored", "reason"), [(*pair, reason) for reason, pairs in APART.items() for pair in pairs]
)
def test_questions_that_differ_in_meaning_are_kept_apart(
    asked: str, stored: str, reason: GuardReason
) -> None:
    """Whatever an embedder says of their similarity, in both directions."""
    assert reason in refusals(asked, stored, EVERY)
    assert reason in refusals(stored, asked, EVERY)


@pytest.mark.parametrize(("asked", "stored"), TOGETHER)
def test_the_same_question_in_other_words_passes(asked: str, stored: str) -> None:
    """Another spelling of a number, an order that means nothing, a contraction."""
    assert refusals(asked, stored) == ()


def test_only_the_checks_that_are_asked_for_refuse() -> None:
    """A check that is switched off lets its class through, and the other checks stay."""
    asked, stored = "Is the 2 GB plan on in Kent?", "Is the 3 GB plan never on in Devon?"
    found = {check: refusals(asked, stored, (check,)) for check in EVERY}
    assert found == {
        GuardCheck.NUMBERS: (GuardReason.NUMBERS,),
        GuardCheck.NEGATION: (GuardReason.NEGATION,),
        GuardCheck.ORDER: (),
        GuardCheck.ANTONYMS: (),
        GuardCheck.NAMES: (GuardReason.NAMES,),
    }
    assert refusals(asked, stored) == (GuardReason.NUMBERS, GuardReason.NEGATION)
    assert refusals(asked, stored, ()) == ()


def test_names_are_a_switch_of_their_own() -> None:
    """They cost hits, so that they are not among the checks of an object that lists none."""
    assert set(EVERY) - set(DEFAULT_GUARD) == {GuardCheck.NAMES}


def test_an_unread_language_passes_only_where_the_policy_says_so() -> None:
    """And then what needs no words is still compared."""
    asked, stored = "Сколько стоит 2 ГБ?", "Какова цена 2 ГБ?"
    assert refusals(asked, stored) == (GuardReason.LANGUAGE,)
    assert refusals(asked, stored, other_languages=True) == ()
    assert refusals(asked, "Сколько стоит 3 ГБ?", other_languages=True) == (GuardReason.NUMBERS,)
    assert refusals(asked, "What do 2 GB cost?", other_languages=True) == (GuardReason.LANGUAGE,)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I change the address of my account?", "en"),
        ("Is cereal soup?", "en"),
        ("Will web servers always support it?", "en"),
        ("Wie ändere ich die Adresse meines Kontos?", "de"),
        ("Comment changer l'adresse de mon compte ?", "fr"),
        ("¿Cómo cambio la dirección de mi cuenta?", "es"),
        ("Come cambio l'indirizzo del mio account?", None),
        ("Como altero o endereço da minha conta?", None),
        ("Hoe verander ik het adres van mijn account?", None),
        ("Jak zmienić adres mojego konta?", None),
        ("Hur ändrar jag adressen till mitt konto?", None),
        ("Hesabımın adresini nasıl değiştirebilirim?", None),  # noqa: RUF001
        ("如何更改我的账户地址?", None),
        ("كيف أغير عنوان حسابي؟", None),
        ("Ηow do I log in?", None),  # noqa: RUF001 - the first letter is Greek
        ("What does TGF-β do?", "en"),
        ("", None),
        ("42", None),
    ],
)
def test_a_language_is_told_by_its_words_or_not_at_all(text: str, language: str | None) -> None:
    """A language without word lists, a foreign script, or a text that says too little, has none."""
    assert language_of(text) == language


WORDS = """
    how do I not turn the light off on from Rome to Bern 2 GB , . ? two hundred and five % $ € May
    3rd is was enable disabled wie ich nicht ein aus comment l'eau d' ne pas qué no 10:30 1,000
    1.000 IV C++ ½ ² don't user's 😀 ١٢ Straße - ' –
""".split()  # noqa: RUF001, SIM905

TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(WORDS),
        max_size=12,
    ).map(" ".join),
)


@given(TEXTS, TEXTS, st.sets(st.sampled_from(EVERY)), st.booleans())
def test_the_guard_is_symmetric_pure_and_never_refuses_equal_texts(
    asked: str, stored: str, checks: set[GuardCheck], other: bool
) -> None:
    """For any two texts at all."""
    found = refusals(asked, stored, checks, other_languages=other)
    assert found == refusals(stored, asked, checks, other_languages=other)
    assert found == refusals(asked, stored, checks, other_languages=other)
    assert refusals(asked, asked, checks, other_languages=other) == ()


@given(TEXTS, TEXTS)
def test_a_check_more_only_ever_refuses_more(asked: str, stored: str) -> None:
    """So that switching one on cannot let anything through."""
    every = set(refusals(asked, stored, EVERY))
    for check in EVERY:
        assert set(refusals(asked, stored, (check,))) <= every


@pytest.mark.parametrize("lexicon", LEXICONS.values(), ids=list(LEXICONS))
def test_the_word_lists_of_a_language_are_well_formed(lexicon: Lexicon) -> None:
    """No stem takes in half of the language, and no word excludes itself."""
    assert all(len(stem) >= SHORTEST_STEM - 1 for stem in lexicon.opposites.stems)
    for word, sides in (*lexicon.opposites.whole.items(), *lexicon.opposites.stems.items()):
        lines = [line for line, _ in sides]
        assert len(lines) == len(set(lines)), word
    assert all(any(word in lexicon.negations for word in phrase) for phrase in lexicon.idle_phrases)
    assert lexicon.ambiguous_dates <= lexicon.dates.keys()


def test_the_word_lists_of_two_languages_are_told_apart() -> None:
    """Each language has words that only it claims."""
    for one, other in combinations(LEXICONS.values(), 2):
        assert one.function_words - other.function_words
        assert other.function_words - one.function_words
