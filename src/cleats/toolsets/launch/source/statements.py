"""Items of a list turned into whole sentences about the product, or left out."""

import re
from dataclasses import dataclass
from typing import Final

from cleats.toolsets.launch.source import prose
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.verbs import FINITE, NOUNS_TOO, PLAIN, THIRD, wordset

_PICTURE: Final = re.compile(r"^[^\w`\"'(.]+")
_ASIDE: Final = re.compile(r"\s*\((see|cf|more|docs?|read|e\.g)\b[^)]*\)", re.IGNORECASE)
_DETERMINER: Final = wordset(
    """
    a an the your any all each every multiple several one two
    """
)
_NOT_A_NOUN: Final = wordset(
    """
    and or but with for to how why what if when while where which who by from in on at as of it
    its this that these those they you your so because since after before until then also not just
    only see here there yes no more most very well plus based built written member part used made
    grow shrink learn know    need want stay focus enjoy
    """
)
_COUNTED: Final = wordset(
    """
    api app application backend browser builder cache cli client collection command compiler console
    converter database debugger decorator editor engine extension file format formatter framework
    function generator handler helper implementation importer exporter interface interpreter
    iterator language layer lexer library linter loader method mode model module package parser
    plugin port printer processor program prompt protocol reader recorder renderer router runner
    scheduler schema scraper script server service shell system template terminal tokenizer tool
    toolkit translator type utility validator view viewer widget wrapper writer
    """
)
"""Nouns that stand in the singular only with an article."""

_PREPOSITION: Final = re.compile(r" (?:for|of|with|to|in|on|from|that|which|via|by|as|using) ")
_JOINT: Final = re.compile(_PREPOSITION.pattern.replace("for|", "for|and|or|"))
"""Where the first noun of a phrase is over."""

_BROKEN: Final = re.compile(
    r", but\b|\bif you\b|\s[-\u2013\u2014]\s|[!?]|\.\s|\bdone right\b", re.IGNORECASE
)
"""Marks of something that is more, or less, than one phrase."""

_DANGLING: Final = wordset(
    """
    and or with for to of the a an in on by as etc including
    """
)
_REFERRING: Final = re.compile(
    r"^(it|they|this|these|that|those|he|she|here|there)\b", re.IGNORECASE
)
_ADJECTIVES: Final = re.compile(
    r"^(fully|strictly|statically|completely|purely)\b|\w+(able|ible|ful|ic|ive|ous|ed|less)$"
    r"|^(large|small|big|short|long|high|low|new|old|good|better|free|open|ready|friendly)$",
    re.IGNORECASE,
)


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


def from_item(block: Block, subject: Subject) -> str:
    """The sentence that an item of a feature list stands for; "" when it gives none."""
    if block.only_link or block.html or block.kind != "item":
        return ""
    text = _PICTURE.sub("", _ASIDE.sub("", block.text)).strip()
    text = re.sub(r"(,\s+and|[,;])$", "", text).rstrip(" .")
    text = _without_label(text, block.lead)
    first = prose.sentences(f"{text}.")[0].rstrip(".") if text else ""
    words = first.split()
    if len(words) < 2 or words[-1].lower() in _DANGLING or ":" in first:
        return ""
    made = _sentence(first, words, subject)
    return made if made and prose.is_statement(made) and not _is_praised(first) else ""


def from_limitation(block: Block, subject: Subject) -> list[str]:
    """The sentences of a passage about limits; fragments get the product as their subject."""
    found: list[str] = []
    for whole in prose.sentences(block.text):
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
        elif _REFERRING.match(sentence):
            made = _resolved(sentence, subject)
        elif not _has_verb(words):
            continue
        if prose.is_clean(made) and not prose.is_praise(made) and not prose.is_chatter(made):
            found.append(made)
    return found


def from_paragraph(block: Block, subject: Subject) -> list[str]:
    """The sentences of a paragraph whose subject is the product, said as they stand."""
    if block.html or block.only_link or block.quoted:
        return []
    found: list[str] = []
    known = False
    for sentence in prose.sentences(block.text):
        is_own = _own_subject(sentence, subject)
        made = sentence if is_own else (_resolved(sentence, subject) if known else "")
        known = known or is_own
        if made and prose.is_statement(made):
            found.append(made)
    return found


def summary_sentence(summary: str, subject: Subject) -> str:
    """What a package says of itself in a few words, as a sentence; "" when it only praises."""
    text = prose.sentences(summary)[0].rstrip(".") if summary.strip() else ""
    plain = prose.without_leading_praise(text)
    words = plain.split()
    if len(words) < 2 or len(plain) > 200 or prose.is_praise(plain) or prose.is_unproven(plain):
        return ""
    first = words[0].lower()
    bare = first.strip(",")
    verb = bare in THIRD or bare in PLAIN - (NOUNS_TOO - {"read", "write", "print"})
    phrase = lower_first(plain, subject)
    if _own_subject(f"{plain}.", subject):
        made = f"{plain}."
    elif first in ("a", "an", "the"):
        made = f"{subject.name} is {first} {' '.join(words[1:])}."
    elif verb:
        made = f"{subject.name} {'' if bare in THIRD else 'can '}{first} {' '.join(words[1:])}."
    elif (counted := _with_article(phrase, _PREPOSITION)) != phrase:
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
    keeps = word in subject.proper or not word[1:].islower() or not word[:1].isupper()
    return text if keeps and len(word) > 1 else text[:1].lower() + text[1:]


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
    if first in THIRD:
        predicate = f"{first} {rest}"
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
    if _REFERRING.match(text):
        return _resolved(f"{text}.", subject)
    whole = _has_verb(words[1:]) and first not in _NOT_A_NOUN
    if whole or _own_subject(f"{text}.", subject):
        return f"{text[:1].upper()}{text[1:]}."
    return _noun_phrase(text, words, subject)


def _noun_phrase(text: str, words: list[str], subject: Subject) -> str:
    first, last = words[0].lower(), words[-1].strip("`)").lower()
    if first in _NOT_A_NOUN or first in PLAIN or _ADJECTIVES.search(words[-1]) or len(words) > 18:
        return ""
    if not re.match(r"[A-Za-z0-9`.]", text) or last in PLAIN - NOUNS_TOO or _BROKEN.search(text):
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
    head = (end or _JOINT).split(phrase, maxsplit=1)[0]
    last = head.split()[-1].strip("`,").lower()
    if last not in _COUNTED or head.split()[0].lower() in _DETERMINER:
        return phrase
    sounds = re.match(r"[aeio]|u(?!n[ist]|s[eiu])|(?:[AEFHILMNORSX][A-Z0-9])", phrase)
    return f"{'an' if sounds else 'a'} {phrase}"


def _own_subject(sentence: str, subject: Subject) -> bool:
    """Whether a sentence begins with the product's name and goes on with a verb."""
    words = sentence.split()
    for length in (1, 2, 3, 4, 5):
        if subject.is_named_by(" ".join(words[:length])) and len(words) > length + 1:
            after = words[length].lower()
            return after in FINITE or (after.endswith("ly") and words[length + 1] in FINITE)
    return False


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
    bare = [word.strip("`,.()").lower() for word in words]
    return any(word in sure for word in bare)


def _is_verb(words: list[str]) -> bool:
    """Whether a phrase begins with a verb; one that is a noun too needs its object to tell."""
    first = words[0].lower().strip(",")
    if first in THIRD or first in PLAIN - NOUNS_TOO:
        return True
    return first in PLAIN and words[1].lower() in _DETERMINER


def _is_praised(text: str) -> bool:
    return prose.is_praise(text) or prose.is_unproven(text)


def _whole(word: str) -> str:
    return {"doesn't": "does not", "can't": "cannot"}.get(word, word)
