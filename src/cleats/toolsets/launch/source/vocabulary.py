"""Words that tell what kind of phrase stands in a list: nouns, names, limits, loose ends."""

import re
from typing import Final

from cleats.toolsets.launch.source.verbs import wordset

DETERMINER: Final = wordset(
    """
    a an the your any all each every multiple several one two
    """
)
NOT_A_NOUN: Final = wordset(
    """
    and or but with for to how why what if when while where which who by from in on at as of it
    its this that these those they you your so because since after before until then also not just
    only see here there yes no more most very well plus based built written member part used made
    grow shrink learn know    need want stay focus enjoy
    """
)
PROPER: Final = wordset(
    """
    Python Java Node Go Rust Ruby Swift Kotlin Linux Windows Unix Docker Unicode Excel Word Markdown
    Jupyter Django Flask Git Google Microsoft Amazon Azure Apple Android Chrome Firefox Kubernetes
    Office Outlook English Postgres Redis Sphinx Babel Blender Photoshop Visio
    """
)
"""Names that keep their capital wherever they stand."""

COUNTED: Final = wordset(
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
"""Nouns that stand in the singular only with an article."""

PREPOSITION: Final = re.compile(r" (?:for|of|with|to|in|on|from|that|which|via|by|as|using) ")
JOINT: Final = re.compile(PREPOSITION.pattern.replace("for|", "for|and|or|"))
"""Where the first noun of a phrase is over."""

LIMITING: Final = re.compile(
    r"\b(not|no|cannot|only|never|without|lacks?|missing|limited|unsupported|unable|fails?|must"
    r"|doesn't|can't|isn't|aren't|experimental)\b",
    re.IGNORECASE,
)
LIKE: Final = ("-aware", "-safe", "-free", "-based", "-like", "-driven", "-compatible", "-ready")
BROKEN: Final = re.compile(
    r", but\b|\bif you\b|\s[-\u2013\u2014]\s|[!?]|\.\s|\bdone right\b", re.IGNORECASE
)
"""Marks of something that is more, or less, than one phrase."""

DANGLING: Final = wordset(
    """
    and or with for to of the a an in on by as etc including
    """
)
REFERRING: Final = re.compile(
    r"^(it|they|this|these|that|those|he|she|here|there)\b", re.IGNORECASE
)
ADJECTIVES: Final = re.compile(
    r"^(fully|strictly|statically|completely|purely)\b|\w+(able|ible|ful|ic|ive|ous|ed|less)$"
    r"|^(large|small|big|short|long|high|low|new|old|good|better|free|open|ready|friendly)$",
    re.IGNORECASE,
)
