"""Verbs that software documents begin sentences with, and their third person."""

from typing import Final


def wordset(text: str) -> frozenset[str]:
    """The words of a text as a set: how long lists stay readable."""
    return frozenset(text.split())


PLAIN: Final = wordset(
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

_IRREGULAR: Final = {"be": "is", "have": "has", "do": "does", "go": "goes"}


def third(base: str) -> str:
    """`parse` becomes `parses`, `apply` `applies`, `search` `searches`."""
    if base in _IRREGULAR:
        return _IRREGULAR[base]
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return f"{base[:-1]}ies"
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        doubled = "z" if base == "quiz" else ""
        return f"{base}{doubled}es"
    return f"{base}s"


THIRD: Final = frozenset({third(base) for base in PLAIN} | set(_IRREGULAR.values()) | {"can"})
"""The third person, which needs a subject before it: `parses`."""

NOUNS_TOO: Final = wordset(
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
"""Those that are as often a noun: what follows has to decide."""

FINITE: Final = THIRD | {
    *("are", "was", "were", "has", "have", "does", "do", "cannot"),
    *("include", "support", "provide", "work", "require", "use", "return", "accept", "contain"),
}
"""Words that make a sentence of the words around them."""
