"""Sentences about the product, built from list items and paragraphs of its documents."""

import re
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.documents import Block
from cleats.toolsets.launch.source.text.english import BASE_VERBS, FINITE_VERBS, NOUN_LIKE_VERBS, THIRD_PERSON_VERBS

MAX_LABEL_WORDS: Final = 6
"""Words of the label of an item at most; a longer one is a sentence with a colon."""

MIN_TAGLINE_WORDS: Final = 3
"""Longer words of a tagline besides its praise, from which it says what the product is."""

_LEADING_SYMBOL_PATTERN: Final = re.compile(r"^[^\w`\"'(.]+")
_LIMITATION_VERBS: Final = {
    "no": "has no",
    "does": "does",
    "doesn't": "does not",
    **dict.fromkeys(("cannot", "can't"), "cannot"),
}
"""First words of a limitation, and the verb that they stand for."""

_FEATURE_STARTS: Final = {
    "doesn't ": "does not",
    "don't ": "does not",
    "never ": "never",
    "no ": "has no",
    "zero ": "has no",
    "support for ": "supports",
    "ability to ": "can",
    "able to ": "can",
}
"""First words of a feature, and the verb that they stand for."""

_DETERMINERS: Final = english.load_words("determiners")
_NON_NOUNS: Final = english.load_words("non_nouns")
_PROPER_NAMES: Final = english.load_words("proper_names")
_COUNTABLE_NOUNS: Final = english.load_words("countable_nouns")
_DANGLING_WORDS: Final = english.load_words("dangling")
_LIMITATION_PATTERN: Final = english.load_pattern("limitation")
_PREPOSITION_PATTERN: Final = re.compile(r" (?:for|of|with|to|in|on|from|that|which|via|by|as|using) ")
_PHRASE_JOINT_PATTERN: Final = re.compile(_PREPOSITION_PATTERN.pattern.replace("for|", "for|and|or|"))
"""The end of the first noun of a phrase."""

_ADJECTIVE_SUFFIXES: Final = ("-aware", "-safe", "-free", "-based", "-like", "-driven", "-compatible", "-ready")
_ADJECTIVE_PATTERN: Final = english.load_expression("adjective")
_BROKEN_PHRASE_PATTERN: Final = english.load_expression("broken_phrase")
"""Marks of a text that is more, or less, than one phrase."""

_PURPOSE_CLAUSE_PATTERN: Final = re.compile(r" (?:optimi[sz]ed|designed|made|built) for [^,.;]*")
_REFERRING_WORD_PATTERN: Final = re.compile(r"^(it|they|this|these|that|those|he|she|here|there)\b", re.IGNORECASE)
_SELF_REFERENCE_PATTERN: Final = re.compile(r"This (?:library|package|module|crate|gem|framework|tool)\b")
"""A subject that can only be the product, also before a document has named it."""

_SELF_DESCRIPTION_PATTERN: Final = re.compile(
    r"(?:The|This) [\w .-]*?\b(?:library|package|module|project|component|framework|crate|tool|client|SDK) "
    r"(?:is|provides|offers|contains|implements|adds|lets|allows|enables|makes)\b"
)
"""A summary that is already a sentence about the product."""

_PARENTHETICAL_PATTERN: Final = re.compile(r"\s*\((see|cf|more|docs?|read|e\.g)\b[^)]*\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProductSubject:
    """The product and the names that its documents use."""

    name: str
    """The name that generated sentences use."""
    aliases: frozenset[str] = frozenset()
    """Other names of the product, in lower case."""
    proper: frozenset[str] = frozenset()
    """Words that keep their capital inside a sentence."""

    def is_named_by(self, words: str) -> bool:
        return words.strip("`*_").lower() in self.aliases | {self.name.lower()}


def begins_with_verb(text: str) -> bool:
    """Return whether a list item is an instruction."""
    words = text.split()
    is_noun = len(words) > 1 and words[1].lower() in ("for", "of")
    return len(words) > 1 and words[0].lower().strip(",") in BASE_VERBS and not is_noun


def build_item_sentence(block: Block, subject: ProductSubject, *, allow_phrases: bool = True) -> str:
    """Return the sentence that an item of a feature list stands for; "" when it gives none.

    Without `allow_phrases` an item must have a verb: in a list of instructions, an unknown first
    word is most likely a verb.
    """
    if block.only_link or block.html or block.kind != "item":
        return ""
    text = _LEADING_SYMBOL_PATTERN.sub("", _PARENTHETICAL_PATTERN.sub("", block.text)).strip()
    text = re.sub(r"(,\s+and|[,;])$", "", text).rstrip(" .")
    if labelled := _build_labelled_statement(text, block.lead):
        return labelled if english.is_quotable(labelled) and not _is_promotional(labelled) else ""
    first = english.split_sentences(f"{text}.")[0].rstrip(".") if text else ""
    words = first.split()
    if len(words) < 2 or words[-1].lower() in _DANGLING_WORDS or ":" in first:
        return ""
    statement = _build_feature_sentence(first, words, subject)
    if not allow_phrases and not statement.startswith(f"{subject.name} "):
        is_task = begins_with_verb(first)
        statement = f"{subject.name} can {lower_first_letter(first, subject)}." if is_task else ""
    return statement if statement and english.is_statement(statement) and not _is_promotional(first) else ""


def build_limitation_sentences(block: Block, subject: ProductSubject, *, only_limitations: bool = True) -> list[str]:
    """Return what a block says about a limitation, with the product as the subject of its first sentence.

    Unless the section has `only_limitations`, the sentence itself must state one. What explains it,
    behind a colon or in further sentences, is kept as it is written.
    """
    sentences = english.split_sentences(block.text)
    sentence, colon, explanation = next(iter(sentences), "").partition(": ")
    further = [f"{item.rstrip('.')}." for item in sentences[1:]]
    explained = [f"{explanation.rstrip('.')}."] if colon else []
    words = sentence.rstrip(".").split()
    if not words or block.only_link:
        return []
    first = words[0].lower()
    rest = " ".join(words[1:])
    statement = f"{sentence.removesuffix('.')}."
    if first in _LIMITATION_VERBS:
        statement = f"{subject.name} {_LIMITATION_VERBS[first]} {rest}."
    elif _REFERRING_WORD_PATTERN.match(sentence):
        statement = _resolve_pronoun(sentence, subject)
    elif not _has_finite_verb(words):
        return []
    is_limitation = only_limitations or bool(_LIMITATION_PATTERN.search(statement))
    is_usable = english.is_plain(statement) and len(statement.split()) > 3
    if not is_usable or not is_limitation:
        return []
    if explained and english.is_quotable(explained[0], is_item=True):
        statement = f"{statement.removesuffix('.')}: {explained[0]}"
    usable_rest = further if all(english.is_quotable(item, is_item=True) for item in further) else []
    return [" ".join([statement, *usable_rest])]


def extract_product_sentences(block: Block, subject: ProductSubject) -> list[str]:
    """Return the sentences of a paragraph whose subject is the product, nearly verbatim."""
    if block.html or block.only_link or block.quoted:
        return []
    statements: list[str] = []
    is_product_named = False
    for sentence in _split_sentences(block.text, subject):
        is_own = has_product_subject(sentence, subject)
        statement = _strip_predicate_praise(sentence) if is_own else ""
        if not is_own and (is_product_named or _SELF_REFERENCE_PATTERN.match(sentence)):
            statement = _strip_predicate_praise(_resolve_pronoun(sentence, subject))
        is_product_named = is_product_named or is_own
        if is_own and not english.is_statement(statement):
            statement = strip_merits(sentence)
        if statement and english.is_statement(statement):
            statements.append(statement)
    return statements


def _split_sentences(text: str, subject: ProductSubject) -> list[str]:
    """Split a text into sentences, which may begin with a lower-case product name."""
    names = sorted({*subject.aliases, subject.name}, key=len, reverse=True)
    name_pattern = "|".join(re.escape(name) for name in names if name)
    parts = re.split(rf"(?<=[.!?])\s+(?=(?:{name_pattern})\s)", text) if name_pattern else [text]
    return [sentence for part in parts for sentence in english.split_sentences(part)]


def build_summary_sentence(summary: str, subject: ProductSubject) -> str:
    """Return the summary of a package as a sentence; "" when it is only praise."""
    summary = english.replace_emoticons(summary.strip())
    text = english.split_sentences(summary)[0].rstrip(".") if summary else ""
    plain = english.strip_leading_praise(text)
    words = plain.split()
    if len(words) < 2 or len(plain) > 200:
        return ""
    if _is_promotional(plain):
        return _quote_praising_tagline(text, subject)
    rest = {word.strip("`,").lower() for word in words} - {"a", "an", "the", "for", "python"}
    if len(rest - subject.aliases) < 2:
        return ""  # a name is no description
    statement = _build_definition(text, plain, words, subject)
    tagline = f'{subject.name} describes itself as "{text}".'
    if not english.is_clean(statement) and plain == text and english.is_quotable(tagline):
        return tagline if '"' not in text and not english.is_promise(text) else ""
    if not statement:
        return _quote_praising_tagline(text, subject)
    is_usable = english.is_clean(statement) and not english.is_speculative(statement)
    return statement if is_usable and "!" not in statement else ""


def _build_definition(text: str, plain: str, words: list[str], subject: ProductSubject) -> str:
    """Return the sentence that a summary makes without its praise; "" if it makes none."""
    first = words[0].lower()
    bare = first.strip(",")
    had_adverb = plain != text and text.split(maxsplit=1)[0].lower().strip(",").endswith("ly")
    certain_verbs = BASE_VERBS if had_adverb else BASE_VERBS - (NOUN_LIKE_VERBS - {"read", "write", "print"})
    is_verb = bare in THIRD_PERSON_VERBS or bare in certain_verbs or (bare in BASE_VERBS and words[1] in _DETERMINERS)
    phrase = lower_first_letter(plain, subject)
    if has_product_subject(f"{plain}.", subject) or _SELF_DESCRIPTION_PATTERN.match(plain):
        return f"{plain}."
    if first in ("a", "an", "the"):
        return f"{subject.name} is {first} {' '.join(words[1:])}."
    if is_verb:
        return f"{subject.name} {'' if bare in THIRD_PERSON_VERBS else 'can '}{first} {' '.join(words[1:])}."
    if (with_article := _add_article(phrase, _PREPOSITION_PATTERN)) != phrase:
        return f"{subject.name} is {with_article}."
    return f'{subject.name} describes itself as "{text}".' if plain == text else ""


def _quote_praising_tagline(text: str, subject: ProductSubject) -> str:
    """Return a tagline as a quotation if it also says what the product is, and promises nothing that needs evidence."""
    first_word = text.split(maxsplit=1)[0].lower()
    content = [word for word in re.findall(r"[\w.-]+", english.remove_praise(text)) if len(word) > 3]
    if len(content) < MIN_TAGLINE_WORDS or first_word.endswith("ly") or '"' in text:
        return ""
    if first_word in THIRD_PERSON_VERBS:
        tagline = f"{subject.name} {text}."
    elif _SELF_DESCRIPTION_PATTERN.match(text):
        tagline = f"{text}."
    else:
        tagline = f'{subject.name} describes itself as "{text}".'
    is_promise = english.is_promise(text) or english.is_unproven(text) or english.is_strong_praise(text)
    return tagline if english.is_quotable(tagline) and not is_promise else ""


def lower_first_letter(text: str, subject: ProductSubject) -> str:
    """Lower-case the first letter, unless the first word is a name or an abbreviation."""
    word = re.split(r"[\s,/-]", text, maxsplit=1)[0]
    is_proper = word in subject.proper or word in _PROPER_NAMES
    if len(word) == 1:  # C and R are languages
        return text if word != "A" else f"a{text[1:]}"
    keeps_case = is_proper or not word[1:].islower()
    return text if keeps_case else text[:1].lower() + text[1:]


def find_proper_words(texts: list[str]) -> frozenset[str]:
    """Return the words that are always capitalised in the middle of sentences."""
    words = [word for text in texts for word in re.findall(r"(?<![.!?:]\s)(?<=\s)[A-Za-z][A-Za-z]+\b", text)]
    lowercase = {word for word in words if word[0].islower()}
    return frozenset(word for word in words if word[0].isupper() and word.lower() not in lowercase)


def _build_feature_sentence(text: str, words: list[str], subject: ProductSubject) -> str:
    first = words[0].lower().strip(",")
    rest = " ".join(words[1:])
    if first in THIRD_PERSON_VERBS or first.rpartition("-")[2] in THIRD_PERSON_VERBS - {"can"}:
        return f"{subject.name} {first} {rest}."
    for start, verb in _FEATURE_STARTS.items():
        if text.lower().startswith(start):
            return f"{subject.name} {verb} {text[len(start) :]}."
    if _is_verb_phrase(words):
        return f"{subject.name} can {first} {rest}."
    if _REFERRING_WORD_PATTERN.match(text):
        return _resolve_pronoun(f"{text}.", subject)
    is_full_sentence = _has_finite_verb(words[1:]) and first not in _NON_NOUNS
    if is_full_sentence or has_product_subject(f"{text}.", subject):
        return f"{text[:1].upper()}{text[1:]}."
    return _build_noun_sentence(text, words, subject)


def _build_noun_sentence(text: str, words: list[str], subject: ProductSubject) -> str:
    first, last = words[0].lower(), words[-1].strip("`)").lower()
    if (
        len(words) > 18
        or first in _NON_NOUNS | BASE_VERBS
        or last in BASE_VERBS - NOUN_LIKE_VERBS
        or _ADJECTIVE_PATTERN.search(words[-1])
        or _BROKEN_PHRASE_PATTERN.search(text)
        or not re.match(r"[A-Za-z0-9`.]", text)
    ):
        return ""
    head = _PHRASE_JOINT_PATTERN.split(text, maxsplit=1)[0].split()[-1].strip("`,")
    if _ADJECTIVE_PATTERN.search(head) or head.lower().endswith(_ADJECTIVE_SUFFIXES):
        return ""
    phrase = lower_first_letter(_lower_title_case(text, subject), subject)
    return f"The features of {subject.name} include {_add_article(phrase)}."


def _lower_title_case(text: str, subject: ProductSubject) -> str:
    """Return a title such as `Multipart File Uploads` in sentence case."""
    words = text.split()
    capitalised = [word for word in words[1:] if word[:1].isupper() and word[1:].islower()]
    if not capitalised or any(word.islower() and len(word) > 4 for word in words[1:]):
        return text

    def lower_word(word: re.Match[str]) -> str:
        is_title = word[0][:1].isupper() and word[0][1:].islower()
        return word[0].lower() if is_title and word[0] not in subject.proper else word[0]

    return re.sub(r"[^\s/-]+", lower_word, " ".join(words))


def _add_article(phrase: str, end: re.Pattern[str] | None = None) -> str:
    """Add an article if the head noun needs one, as in `an immutable API`."""
    head = (end or _PHRASE_JOINT_PATTERN).split(phrase, maxsplit=1)[0]
    last = head.split()[-1].strip("`,").lower().rpartition("-")[2]  # a web-framework is one
    if last not in _COUNTABLE_NOUNS or head.split()[0].lower() in _DETERMINERS:
        return phrase
    starts_with_vowel = re.match(r"[aeio]|u(?!n[ist]|s[eiu])|(?:[AEFHILMNORSX][A-Z0-9])", phrase)
    return f"{'an' if starts_with_vowel else 'a'} {phrase}"


def has_product_subject(sentence: str, subject: ProductSubject) -> bool:
    """Return whether a sentence begins with the product's name followed by a verb."""
    words = sentence.split()
    for length in (1, 2, 3, 4, 5):
        if subject.is_named_by(" ".join(words[:length])) and len(words) > length + 1:
            next_word = words[length].lower()
            return next_word in FINITE_VERBS or (next_word.endswith("ly") and words[length + 1] in FINITE_VERBS)
    return False


def strip_merits(sentence: str) -> str:
    """Return a definition without praise and unproven clauses, "" for another sentence.

    `X is a fast parser, ready to be used safely.` becomes `X is a parser.`
    """
    plain = _PURPOSE_CLAUSE_PATTERN.sub(
        lambda match: "" if _is_promotional(match[0]) else match[0], _strip_predicate_praise(sentence)
    )
    first, *others = plain.removesuffix(".").split(", ")
    clauses = [first, *(clause for clause in others if not _is_promotional(clause))]
    is_definition = bool(re.search(r" (?:is|are|provides|offers|implements) an? ", first))
    return f"{', '.join(clauses)}." if is_definition and len(clauses) <= len(others) + 1 else ""


def _strip_predicate_praise(sentence: str) -> str:
    """Drop praise from a predicate: `X is a fast parser` becomes `X is a parser`."""
    match = re.match(r"(.{1,80}? (?:is|provides|offers|implements) )(an? .+)", sentence)
    predicate = english.strip_leading_praise(match[2]) if match else ""
    is_informative = predicate.startswith(("a ", "an ")) and len(predicate.split()) > 3  # a library says nothing
    return f"{match[1]}{predicate}" if match and is_informative else sentence


def _resolve_pronoun(sentence: str, subject: ProductSubject) -> str:
    """Rewrite a sentence about "it" or "this library" with the product's name; "" for any other."""
    pattern = r"^(It|This (?:library|package|module|project|tool|crate|gem|framework))\s+(\w+)"
    match = re.match(pattern, sentence)
    if match and match[2].lower() in FINITE_VERBS and match[2].lower() not in ("was", "were"):
        return f"{subject.name} {match[2]}{sentence[match.end() :]}"
    return ""


def _build_labelled_statement(text: str, lead: str) -> str:
    """Return an item of the form `Label: explanation` as a whole; "" for any other item."""
    label, mark, rest = text.partition(": ")
    for dash in (" - ", " \u2013 ", " \u2014 "):
        if not mark and lead and text.startswith(f"{lead}{dash}"):
            label, mark, rest = lead, dash, text.removeprefix(f"{lead}{dash}")
    if not mark or "`" in label or len(label.split()) > MAX_LABEL_WORDS or len(rest.split()) < 2:
        return ""
    return f"{label[:1].upper()}{label[1:].rstrip(':')}: {rest.strip()}."


def _has_finite_verb(words: list[str]) -> bool:
    finite_verbs = {"is", "are", "was", "were", "can", "cannot", "has", "have", "does", "do", "must"}
    for word in re.sub(r"\([^)]*\)", "", " ".join(words)).split():
        bare = word.strip("`,.").lower()
        if bare in ("which", "that", "who", "whose", "where"):
            return False  # its verb is not the sentence's
        if bare in finite_verbs:
            return True
    return False


def _is_verb_phrase(words: list[str]) -> bool:
    """Return whether a phrase begins with a verb; a verb that is also a noun needs an object."""
    first = words[0].lower().strip(",")
    if first in THIRD_PERSON_VERBS or first in BASE_VERBS - NOUN_LIKE_VERBS:
        return True
    return first in BASE_VERBS and words[1].lower() in _DETERMINERS


def _is_promotional(text: str) -> bool:
    return english.is_praise(text) or english.is_unproven(text)
