"""Criteria for sentences that may be reused: complete, plain, about the product, without praise."""

import re
from typing import Final

from cleats.toolsets.launch.source.text.word_lists import make_word_set

MIN_SENTENCE_CHARACTERS: Final = 12
MAX_SENTENCE_CHARACTERS: Final = 320
"""Limits of a sentence: a shorter one says nothing, a longer one is not read."""

_PRAISE_PATTERN: Final = re.compile(
    r"\b("
    + "|".join(
        sorted(
            make_word_set(
                r"""
                amazing astonish\w* awesome batteries\sincluded battle[-\s]tested beautiful\w*
                best better blazing\w* breathtaking brilliant bullet[-\s]?proof clean clever
                comfortable complete\ssolution comprehensive concise\w* convenient\w* cool
                cutting[-\s]edge definitive delight\w* developer\sexperience done\sright easier
                easiest easily easy effortless\w* elegant\w* enterprise[-\s](grade|ready)
                ergonomic\w* excellent excit\w* expressive extensive(ly)? extremely familiar
                fancy fantastic feature[-\s](rich|complete) first[-\s]class friendlier friendly
                full[-\s]blown fully[-\s]featured fun game[-\s]chang\w* gorgeous great handy
                happy hassle high[-\s]quality highly human[-\s]friendly ideal\w* impressive
                incredibl\w* industry[-\s]\w+ innovative intelligent\w* intuitive\w* joy\w*
                just\sworks leading lean light[-\s]?weight lil'? loved? lovely magic\w*
                massive\w* mature minimal(istic|ist)? modern(?!\sbrowsers) neat next[-\s]gen\w*
                nice(ly|r)? no[-\s]nonsense out[-\s]of[-\s]the[-\s]box painless\w* perfect\w*
                pleasant\w* popular powerful pretty(?![-\s]print) production[-\s](grade|ready)
                professional proven pythonic rich\sset robust\w* rock[-\s]solid seamless\w*
                sensible simpler? simplest simply slick smart\w* smooth\w* sophisticated stable
                state[-\s]of[-\s]the[-\s]art stunning super superb sweet tiny trusted ultimate
                ultra\w* uncompromising unique unparalleled user[-\s]friendly versatile well-\w+
                wonderful\w* world[-\s]class zero[-\s](config\w*|effort)
                """
            )
        )
    )
    + r")\b",
    re.IGNORECASE,
)
"""Words of praise, as patterns."""

_UNPROVEN_PATTERN: Final = re.compile(
    r"\b(fast\w*|speed\w*|quick\w*|performan\w*|efficien\w*|optimi[sz]ed|scal(able|es|ability)"
    r"|low[- ](latency|memory|overhead)|secur\w*|safe(ly|ty|r|st)?|reliab\w*|complian\w*|certified"
    r"|hipaa|gdpr|benchmark\w*|times faster|coverage|memory[- ]\w+|thread[- ]safe)\b",
    re.IGNORECASE,
)
_REMOVABLE_CLAIM_PATTERN: Final = re.compile(
    r"(fast(?! fourier)|efficient|performant|high[- ]performance|scalable|reliable"
    r"|(safe|secure|quick|efficient|reliab)ly)\b",
    re.IGNORECASE,
)
"""Unproven adjectives that can be dropped before a noun, and adverbs before a verb. `secure` is
kept: without it a secure shell would be something else."""

_SPECULATION_PATTERN: Final = re.compile(
    r"\b(may|might|could|should|would|probably|possibly|perhaps|likely|hopefully|maybe|seems?"
    r"|planned|plans? to|upcoming|soon|roadmap|to-?do|wip|work in progress|eventually|will"
    r"|intend(s|ed)?|aims?|expected|in (the )?future|try to|tries to|hope\w*|not yet)\b",
    re.IGNORECASE,
)
_CHATTER_PATTERN: Final = re.compile(
    r"\b(we|we're|we've|our|ours|us|i|i'm|i've|my|me|let's|please|thanks?|welcome|sponsor\w*"
    r"|donat\w*|stars?|most downloaded|depended upon|trusted by|used by|released|follow|subscribe"
    r"|click here|check out|see (the|our|also|below)|read more|head over|sorry|note that"
    r"|for (more|further) (information|details?)|as (shown|described|mentioned)|named after"
    r"|inspired by|(the )?following|below|above|contribut\w+|on github|downloads per"
    r"|this (readme|page|document|section|guide)|here|issues? tracker|pull requests?|community"
    r"|maintain(ed|er|ers)|copyright|license[ds]?|(you|they) (want|like|need|know|love)"
    r"|discord|slack|twitter|stack ?overflow|mailing list)\b",
    re.IGNORECASE,
)
_MARKUP_PATTERN: Final = re.compile(
    r"https?://|www\.|[<>{}|^\\]|\]\(|\[\[|==|\*\*|::|__|&\w+;|\$\(|/>|:\w+:`|\u2192|\.\.\.|\u2026"
)
_UNUSUAL_CHARACTER_PATTERN: Final = re.compile(r"[^\x20-\x7e\u00a0-\u024f\u2010-\u2027\u20ac]")
_OPEN_END_WORDS: Final = make_word_set("a an the and or of to for with by in on at from as than its their is")
"""Words that cannot end a sentence."""

_INLINE_CODE_PATTERN: Final = re.compile(r"`[^`]*`")
_SENTENCE_END_PATTERN: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(`A-Z0-9])")
_ABBREVIATION_PATTERN: Final = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|incl|resp|No|Fig|Mr|Dr|St)\.$")


def split_sentences(text: str) -> list[str]:
    """Split running text into sentences; abbreviations and code do not end one."""
    sentences: list[str] = []
    for part in _SENTENCE_END_PATTERN.split(" ".join(text.split())):
        if sentences and (_ABBREVIATION_PATTERN.search(sentences[-1]) or sentences[-1].count("`") % 2):
            sentences[-1] += f" {part}"
        else:
            sentences.append(part)
    return [part.strip() for part in sentences if part.strip()]


def is_clean(sentence: str) -> bool:
    """Return whether a sentence is complete and free of markup, links and unusual signs."""
    bare = _INLINE_CODE_PATTERN.sub("x", sentence)
    return (
        MIN_SENTENCE_CHARACTERS <= len(sentence) <= MAX_SENTENCE_CHARACTERS
        and sentence.endswith(".")
        and not sentence.endswith("..")
        and bool(re.match(r"[A-Z`\"'(0-9]|[a-z][\w.-]*\s(is|can|has|was|does|\w+s)\b", sentence))
        and not _MARKUP_PATTERN.search(bare)
        and not _UNUSUAL_CHARACTER_PATTERN.search(bare)
        and sentence.count("`") % 2 == 0
        and bare.count("(") == bare.count(")")
        and bare.count("[") == bare.count("]")
        and bare.count('"') % 2 == 0
        and not set(":;!?") & set(bare)
        and len(bare.split()) >= 3
        and bare.rstrip(".").split()[-1].lower() not in _OPEN_END_WORDS
    )


def is_praise(text: str) -> bool:
    """Return whether a text contains praise, which is never a fact."""
    return bool(_PRAISE_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def strip_leading_praise(text: str) -> str:
    """Drop praise at the beginning: `A fast and modern date library` becomes `a date library`."""
    article = re.match(r"(a|an) (?=\S)", text, re.IGNORECASE)
    rest = text[article.end() :] if article else text
    while praise := _PRAISE_PATTERN.match(rest) or _REMOVABLE_CLAIM_PATTERN.match(rest):
        if rest[praise.end() :][:1] not in (" ", ","):
            break
        rest = rest[praise.end() :].lstrip(" ,").removeprefix("and ")
    if not article or rest == text[article.end() :]:
        return rest
    return f"{'an' if rest[:1].lower() in 'aeio' else 'a'} {rest}"


def is_unproven(text: str) -> bool:
    """Return whether a text is about speed, safety or compliance, which needs separate evidence."""
    bare = _INLINE_CODE_PATTERN.sub("x", text)
    return bool(_UNPROVEN_PATTERN.search(bare)) or "100%" in bare


def is_speculative(text: str) -> bool:
    """Return whether a text says what could be, will be or is hoped for."""
    return bool(_SPECULATION_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def is_chatter(text: str) -> bool:
    """Return whether a text addresses its reader about the project or page, not the product."""
    return bool(_CHATTER_PATTERN.search(_INLINE_CODE_PATTERN.sub("x", text)))


def is_plain(sentence: str) -> bool:
    """Return whether a sentence is clean, and neither praise nor chatter."""
    return is_clean(sentence) and not is_praise(sentence) and not is_chatter(sentence)


def is_statement(sentence: str, *, allow_inference: bool = False) -> bool:
    """Return whether a sentence may be used on a page as it is."""
    return is_plain(sentence) and (allow_inference or not (is_speculative(sentence) or is_unproven(sentence)))
