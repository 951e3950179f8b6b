"""Verbs that begin sentences in software documents, and their third person."""

import re
from typing import Final


def make_word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set, which keeps long lists readable."""
    return frozenset(text.split())


BASE_VERBS: Final = make_word_set(
    """
    accept access activate adapt add adjust aggregate align allow analyze append apply assemble
    assert assign associate attach attempt authenticate authorize avoid begin bind bootstrap bring
    browse build bundle calculate call cancel capture catch change check choose clean clear clone
    close collapse collect combine compare compile complete compose compress compute concatenate
    configure confirm connect consume construct contain continue control convert copy correct
    count create customize deal decode decompress decorate decrease decrypt deduplicate define
    delegate delete deliver deploy derive describe deserialize detect determine diff disable
    discard discover dispatch divide download draw drop dump edit emit emulate enable encapsulate
    encode encrypt end enforce ensure enumerate escape establish evaluate examine exclude execute
    exit expand explain expose extend extract fail fetch fill filter find finish fire flatten flip
    flush follow force format forward generate get give group guess handle hash help hide hold
    identify ignore implement import include indent infer inform inherit initialize inject insert
    inspect install instantiate instruct integrate intercept interpolate interpret invalidate
    invert invoke iterate join keep launch let limit link listen list load locate lock log look
    loop maintain make manage manipulate map mark match measure merge migrate minify mirror mix
    mock modify monitor mount move multiply navigate negate normalize notify obtain offer omit
    open optimize order organize output overlay override overwrite pack pad parse partition pass
    patch perform persist pick pipe place plot populate post prefix prepare prepend preserve
    pretty-print prevent print process produce prompt propagate protect provide publish pull push
    put query queue quote raise randomize reach read rebuild receive recognize reconstruct record
    redirect reduce refresh register reject release reload remove rename render reorder repeat
    replace report represent request require reset resize resolve respond restart restore restrict
    retrieve retry return reuse reverse rewrite rotate round route run sanitize save scale scan
    schedule scroll search select send separate serialize serve set setup shift shorten show
    shuffle simplify simulate skip slice solve sort specify split start stop store stream strip
    submit subscribe subtract summarize supply support suppress swap switch sync synchronize take
    tell terminate test throw time toggle track transform translate transpose traverse trigger
    trim truncate turn understand undo unescape unify uninstall unlock unpack unregister unwrap
    update upgrade upload use validate verify view visit visualize wait walk warn watch work wrap
    write yield zip
    capitalize colorize paginate pluralize singularize transliterate unzip
    deactivate declare style stringify tokenize memoize rank sum tag hook
    """
)
"""The base form: `parse`."""

_IRREGULAR_VERBS: Final = {"be": "is", "have": "has", "do": "does", "go": "goes"}


def conjugate_third_person(base: str) -> str:
    """Return the third person of a verb: `parses`, `applies`, `searches`."""
    if base in _IRREGULAR_VERBS:
        return _IRREGULAR_VERBS[base]
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ies"
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        doubled = "z" if base == "quiz" else ""
        return f"{base}{doubled}es"
    return f"{base}s"


THIRD_PERSON_VERBS: Final = frozenset(
    {conjugate_third_person(base) for base in BASE_VERBS} | set(_IRREGULAR_VERBS.values()) | {"can"}
)
"""The third person, which needs a subject: `parses`."""

NOUN_LIKE_VERBS: Final = make_word_set(
    """
    access access build bundle call capture change check clone control copy count diff draw drop
    dump edit end exit filter fire flush force format function group handle hash help import
    indent input install launch limit link list load lock log look loop map mark match measure mix
    mock mount move notice offer order output overlay override pack pad pass patch pick pipe place
    plot post prefix print process prompt protect publish pull push put query queue quote raise
    reach read record release report request reset return reverse rotate round route run scale
    scan schedule scroll search select set setup shift show shuffle skip slice sort split start
    stop store stream strip supply support swap switch sync test time track transform trim turn
    update upgrade upload use view visit walk watch work wrap yield zip
    """
)
"""Verbs that are as often nouns: the words that follow must decide."""

FINITE_VERBS: Final = THIRD_PERSON_VERBS | {
    *("are", "was", "were", "has", "have", "does", "do", "cannot"),
    *("include", "support", "provide", "work", "require", "use", "return", "accept", "contain"),
}
"""Words that turn the words around them into a sentence."""


DETERMINER_WORDS: Final = make_word_set(
    """
    a an the your any all each every multiple several one two
    """
)
NON_NOUN_WORDS: Final = make_word_set(
    """
    and or but with for to how why what if when while where which who by from in on at as of it
    its this that these those they you your so because since after before until then also not just
    only see here there yes no more most very well plus based built written member part used made
    grow shrink learn know    need want stay focus enjoy
    """
)
PROPER_NAMES: Final = make_word_set(
    """
    Python Java Node Go Rust Ruby Swift Kotlin Linux Windows Unix Docker Unicode Excel Word Markdown
    Jupyter Django Flask Git Google Microsoft Amazon Azure Apple Android Chrome Firefox Kubernetes
    Office Outlook English Postgres Redis Sphinx Babel Blender Photoshop Visio
    """
)
"""Names that are always capitalised."""

COUNTABLE_NOUNS: Final = make_word_set(
    """
    api app application backend browser builder cache cli client collection command compiler console
    converter database debugger decorator editor engine extension file format formatter framework
    function generator handler helper implementation importer exporter interface interpreter
    iterator language layer lexer library linter loader method mode model module package parser
    plugin port printer processor program prompt protocol reader recorder renderer replacement
    router runner
    scheduler schema scraper script server service shell system template terminal tokenizer tool
    toolkit translator type utility validator view viewer widget wrapper writer
    """
)
"""Nouns that need an article in the singular."""

PREPOSITION_PATTERN: Final = re.compile(r" (?:for|of|with|to|in|on|from|that|which|via|by|as|using) ")
PHRASE_JOINT_PATTERN: Final = re.compile(PREPOSITION_PATTERN.pattern.replace("for|", "for|and|or|"))
"""The end of the first noun of a phrase."""

LIMITATION_PATTERN: Final = re.compile(
    r"\b(not|no|cannot|only|never|without|lacks?|missing|limited|unsupported|unable|fails?|must"
    r"|doesn't|can't|isn't|aren't|experimental)\b",
    re.IGNORECASE,
)
ADJECTIVE_SUFFIXES: Final = ("-aware", "-safe", "-free", "-based", "-like", "-driven", "-compatible", "-ready")
BROKEN_PHRASE_PATTERN: Final = re.compile(
    r", but\b|\bif you\b|\s[-\u2013\u2014]\s|[!?]|\.\s|\bdone right\b", re.IGNORECASE
)
"""Marks of a text that is more, or less, than one phrase."""

DANGLING_WORDS: Final = make_word_set(
    """
    and or with for to of the a an in on by as etc including
    """
)
REFERRING_WORD_PATTERN: Final = re.compile(r"^(it|they|this|these|that|those|he|she|here|there)\b", re.IGNORECASE)
ADJECTIVE_PATTERN: Final = re.compile(
    r"^(fully|strictly|statically|completely|purely)\b|\w+(able|ible|ful|ic|ive|ous|ed|less)$"
    r"|^(large|small|big|short|long|high|low|new|old|good|better|free|open|ready|friendly)$",
    re.IGNORECASE,
)
