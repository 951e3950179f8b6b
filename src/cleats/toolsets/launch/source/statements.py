"""Items of a list turned into whole sentences about the product, or left out."""

import re
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.launch.source import prose, vocabulary
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.verbs import FINITE, NOUNS_TOO, PLAIN, THIRD

_PICTURE: Final = re.compile(r"^[^\w`\"'(.]+")
_ASIDE: Final = re.compile(r"\s*\((see|cf|more|docs?|read|e\.g)\b[^)]*\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Subject:
    """The product as the source speaks of it."""

    name: str
    """What our own sentences call it."""
    aliases: frozenset[str] = frozenset()
    """Other names it goes by, in lower case."""
    proper: frozenset[str] = frozenset()
    """Words that keep their capital inside of a sentence."""

    def is_named_by(self, words: str) -> bool:
        return words.strip("`*_").lower() in self.aliases | {self.name.lower()}


def begins_with_verb(text: str) -> bool:
    """Whether an item of a list tells something to do."""
    words = text.split()
    is_noun = len(words) > 1 and words[1].lower() in ("for", "of")
    return len(words) > 1 and words[0].lower().strip(",") in PLAIN and not is_noun


def from_item(block: Block, subject: Subject, *, phrases: bool = True) -> str:
    """The sentence that an item of a feature list stands for; "" when it gives none.

    Without `phrases` an item must have a verb: in a list of things to do, a first word that is not
    known as a verb most likely is one.
    """
    if block.only_link or block.html or block.kind != "item":
        return ""
    text = _PICTURE.sub("", _ASIDE.sub("", block.text)).strip()
    text = re.sub(r"(,\s+and|[,;])$", "", text).rstrip(" .")
    text = _without_label(text, block.lead)
    first = prose.sentences(f"{text}.")[0].rstrip(".") if text else ""
    words = first.split()
    if len(words) < 2 or words[-1].lower() in vocabulary.DANGLING or ":" in first:
        return ""
    made = _sentence(first, words, subject)
    if not phrases and not made.startswith(f"{subject.name} "):
        to_do = begins_with_verb(first)
        made = f"{subject.name} can {lower_first(first, subject)}." if to_do else ""
    return made if made and prose.is_statement(made) and not _is_praised(first) else ""


def from_limitation(block: Block, subject: Subject, *, sure: bool = True) -> list[str]:
    """The first sentence of a passage about limits; a fragment gets the product as its subject.

    Where the heading is not sure to be about limits only, the sentence itself must tell one.
    """
    found: list[str] = []
    for whole in prose.sentences(block.text)[:1]:
        sentence = f"{whole.partition(': ')[0]}." if ": " in whole else whole  # the rest explains
        words = sentence.rstrip(".").split()
        if not words or block.only_link:
            continue
        first = words[0].lower()
        rest = " ".join(words[1:])
        made = sentence if sentence.endswith(".") else f"{sentence}."
        if first == "no":
            made = f"{subject.name} has no {rest}."
        elif first in ("does", "cannot", "doesn't", "can't"):
            made = f"{subject.name} {_whole(first)} {rest}."
        elif vocabulary.REFERRING.match(sentence):
            made = _resolved(sentence, subject)
        elif not _has_verb(words):
            continue
        usable = prose.is_clean(made) and not prose.is_praise(made) and not prose.is_chatter(made)
        if usable and len(made.split()) > 3 and (sure or vocabulary.LIMITING.search(made)):
            found.append(made)
    return found


def from_paragraph(block: Block, subject: Subject) -> list[str]:
    """The sentences of a paragraph whose subject is the product, said as they stand."""
    if block.html or block.only_link or block.quoted:
        return []
    found: list[str] = []
    known = False
    for sentence in _split(block.text, subject):
        is_own = own_subject(sentence, subject)
        made = _unpraised(sentence) if is_own else (_resolved(sentence, subject) if known else "")
        known = known or is_own
        if made and prose.is_statement(made):
            found.append(made)
    return found


def _split(text: str, subject: Subject) -> list[str]:
    """The sentences of a text; one may begin with a name that is written small."""
    names = sorted({*subject.aliases, subject.name}, key=len, reverse=True)
    begins = "|".join(re.escape(name) for name in names if name)
    parts = re.split(rf"(?<=[.!?])\s+(?=(?:{begins})\s)", text) if begins else [text]
    return [sentence for part in parts for sentence in prose.sentences(part)]


def summary_sentence(summary: str, subject: Subject) -> str:
    """What a package says of itself in a few words, as a sentence; "" when it only praises."""
    text = prose.sentences(summary)[0].rstrip(".") if summary.strip() else ""
    plain = prose.without_leading_praise(text)
    words = plain.split()
    if len(words) < 2 or len(plain) > 200 or prose.is_praise(plain) or prose.is_unproven(plain):
        return ""
    rest = {word.strip("`,").lower() for word in words} - {"a", "an", "the", "for", "python"}
    if len(rest - subject.aliases) < 2:
        return ""  # a name is no description
    first = words[0].lower()
    bare = first.strip(",")
    adverb = plain != text and text.split()[0].lower().strip(",").endswith("ly")
    sure = PLAIN if adverb else PLAIN - (NOUNS_TOO - {"read", "write", "print"})
    verb = bare in THIRD or bare in sure
    phrase = lower_first(plain, subject)
    if own_subject(f"{plain}.", subject):
        made = f"{plain}."
    elif first in ("a", "an", "the"):
        made = f"{subject.name} is {first} {' '.join(words[1:])}."
    elif verb:
        made = f"{subject.name} {'' if bare in THIRD else 'can '}{first} {' '.join(words[1:])}."
    elif (counted := _with_article(phrase, vocabulary.PREPOSITION)) != phrase:
        made = f"{subject.name} is {counted}."
    elif plain == text:
        made = f'{subject.name} describes itself as "{text}".'
    else:
        made = ""
    usable = prose.is_clean(made) and not prose.is_speculative(made) and "!" not in made
    return made if usable else ""


def lower_first(text: str, subject: Subject) -> str:
    """The text with a small first letter, unless its first word is a name or an abbreviation."""
    word = re.split(r"[\s,/-]", text, maxsplit=1)[0]
    known = word in subject.proper or word in vocabulary.PROPER
    if len(word) == 1:  # C and R are languages
        return text if word != "A" else f"a{text[1:]}"
    keeps = known or not word[1:].islower() or not word[:1].isupper()
    return text if keeps else text[:1].lower() + text[1:]


def proper_words(texts: list[str]) -> frozenset[str]:
    """Words that stand with a capital in the middle of sentences and never without one."""
    capital: set[str] = set()
    small: set[str] = set()
    for text in texts:
        words = re.findall(r"(?<![.!?:]\s)(?<=\s)[A-Za-z][A-Za-z]+\b", text)
        capital |= {word for word in words if word[0].isupper()}
        small |= {word for word in words if word[0].islower()}
    return frozenset(word for word in capital if word.lower() not in small)


def _sentence(text: str, words: list[str], subject: Subject) -> str:
    first = words[0].lower().strip(",")
    rest = " ".join(words[1:])
    predicate = ""
    if first in THIRD or first.rpartition("-")[2] in THIRD - {"can"}:
        predicate = f"{first} {rest}"
    elif first in ("doesn't", "don't", "never"):
        predicate = f"{_whole(first)} {rest}"
    elif text.lower().startswith("support for "):
        predicate = f"supports {text[12:]}"
    elif text.lower().startswith(("ability to ", "able to ")):
        predicate = f"can {text.partition(' to ')[2]}"
    elif first in ("no", "zero"):
        predicate = f"has no {rest}"
    elif _is_verb(words):
        predicate = f"can {first} {rest}"
    if predicate:
        return f"{subject.name} {predicate}."
    if vocabulary.REFERRING.match(text):
        return _resolved(f"{text}.", subject)
    whole = _has_verb(words[1:]) and first not in vocabulary.NOT_A_NOUN
    if whole or own_subject(f"{text}.", subject):
        return f"{text[:1].upper()}{text[1:]}."
    return _noun_phrase(text, words, subject)


def _noun_phrase(text: str, words: list[str], subject: Subject) -> str:
    first, last = words[0].lower(), words[-1].strip("`)").lower()
    if (
        first in vocabulary.NOT_A_NOUN
        or first in PLAIN
        or vocabulary.ADJECTIVES.search(words[-1])
        or len(words) > 18
    ):
        return ""
    if (
        not re.match(r"[A-Za-z0-9`.]", text)
        or last in PLAIN - NOUNS_TOO
        or vocabulary.BROKEN.search(text)
    ):
        return ""
    head = vocabulary.JOINT.split(text, maxsplit=1)[0].split()[-1].strip("`,")
    if vocabulary.ADJECTIVES.search(head) or head.lower().endswith(vocabulary.LIKE):
        return ""
    phrase = lower_first(_without_title_case(text, subject), subject)
    return f"The features of {subject.name} include {_with_article(phrase)}."


def _without_title_case(text: str, subject: Subject) -> str:
    """`Multipart File Uploads` as it would stand in a sentence."""
    words = text.split()
    capital = [word for word in words[1:] if word[:1].isupper() and word[1:].islower()]
    if not capital or any(word.islower() and len(word) > 4 for word in words[1:]):
        return text
    return " ".join(_small(word, subject) for word in words)


def _small(word: str, subject: Subject) -> str:
    parts = re.split(r"([-/])", word)
    usual = [
        part[:1].isupper() and part[1:].islower() and part not in subject.proper for part in parts
    ]
    return "".join(
        part.lower() if is_usual else part for part, is_usual in zip(parts, usual, strict=True)
    )


def _with_article(phrase: str, end: re.Pattern[str] | None = None) -> str:
    """`immutable API` is one of them: the nouns that need an article get theirs."""
    head = (end or vocabulary.JOINT).split(phrase, maxsplit=1)[0]
    last = head.split()[-1].strip("`,").lower().rpartition("-")[2]  # a web-framework is one
    if last not in vocabulary.COUNTED or head.split()[0].lower() in vocabulary.DETERMINER:
        return phrase
    sounds = re.match(r"[aeio]|u(?!n[ist]|s[eiu])|(?:[AEFHILMNORSX][A-Z0-9])", phrase)
    return f"{'an' if sounds else 'a'} {phrase}"


def own_subject(sentence: str, subject: Subject) -> bool:
    """Whether a sentence begins with the product's name and goes on with a verb."""
    words = sentence.split()
    for length in (1, 2, 3, 4, 5):
        if subject.is_named_by(" ".join(words[:length])) and len(words) > length + 1:
            after = words[length].lower()
            return after in FINITE or (after.endswith("ly") and words[length + 1] in FINITE)
    return False


def _unpraised(sentence: str) -> str:
    """`X is a fast parser of dates` says that X is a parser of dates."""
    match = re.match(r"(.{1,80}? is )(an? .+)", sentence)
    told = prose.without_leading_praise(match[2]) if match else ""
    enough = told.startswith(("a ", "an ")) and len(told.split()) > 3  # a library says nothing
    return f"{match[1]}{told}" if match and enough else sentence


def _resolved(sentence: str, subject: Subject) -> str:
    """A sentence about "it" or "this library", said about the product; "" when it is neither."""
    pattern = r"^(It|This (?:library|package|module|project|tool|crate|gem|framework))\s+(\w+)"
    match = re.match(pattern, sentence)
    if match and match[2].lower() in FINITE and match[2].lower() not in ("was", "were"):
        return f"{subject.name} {match[2]}{sentence[match.end() :]}"
    return ""


def _without_label(text: str, lead: str) -> str:
    """What stands behind `Label:`, or the label itself where what follows only explains it."""
    label, mark, rest = text.partition(":")
    if not mark and lead and text.startswith(lead):
        for dash in (" - ", " \u2013 ", " \u2014 "):
            if text.removeprefix(lead).startswith(dash):
                label, mark, rest = lead, dash, text.removeprefix(lead + dash)
    if not mark or "`" in label:
        return text
    words = rest.split()
    if len(words) > 1 and _is_verb(words):
        return rest.strip()
    return label.strip()


def _has_verb(words: list[str]) -> bool:
    """Whether a finite verb is among them, no noun in its plural: `are`, `is`, `can`."""
    sure = {"is", "are", "was", "were", "can", "cannot", "has", "have", "does", "do", "must"}
    for word in re.sub(r"\([^)]*\)", "", " ".join(words)).split():
        bare = word.strip("`,.").lower()
        if bare in ("which", "that", "who", "whose", "where"):
            return False  # its verb is not the sentence's
        if bare in sure:
            return True
    return False


def _is_verb(words: list[str]) -> bool:
    """Whether a phrase begins with a verb; one that is a noun too needs its object to tell."""
    first = words[0].lower().strip(",")
    if first in THIRD or first in PLAIN - NOUNS_TOO:
        return True
    return first in PLAIN and words[1].lower() in vocabulary.DETERMINER


def _is_praised(text: str) -> bool:
    return prose.is_praise(text) or prose.is_unproven(text)


def _whole(word: str) -> str:
    plain = {"doesn't": "does not", "don't": "does not", "can't": "cannot"}
    return plain.get(word, word)
