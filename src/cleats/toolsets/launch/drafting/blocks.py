"""The text behind each token of a template.

Every function here makes one block from the material, or an empty text when there is no evidence
for it. A statement of fact is one line that ends with its claim marker. Sentences without one say
what the page does or what the reader can do, never what the product is.
"""

from collections.abc import Callable, Mapping, Sequence

from cleats.toolsets.launch.drafting import tasks
from cleats.toolsets.launch.drafting.context import Context, Neighbour
from cleats.toolsets.launch.drafting.forms import claims, fence
from cleats.toolsets.launch.drafting.material import marker
from cleats.toolsets.launch.drafting.symbols import Symbol, described, split, table


def values(context: Context) -> dict[str, str]:
    """Return the value of every token for one page."""
    return {name: make(context) for name, make in TOKENS.items()}


def _scalar(name: str) -> Callable[[Context], str]:
    def make(context: Context) -> str:
        return str(context.material.facts.get(name) or "")

    return make


def _intro_claim(context: Context) -> str:
    """The claim that says what the product is; empty when none does."""
    material = context.material
    own = [
        each
        for each in material.group("key_features")
        if material.claims[each]["claim_text"].startswith(material.product_name)
    ]
    said = material.facts["positioning"].get("claim_id", "")
    return next(iter(material.known([said, *own])), "")


def _intro(context: Context) -> str:
    claim_id = _intro_claim(context)
    return context.material.say(claim_id) if claim_id else ""


def _scope(context: Context, name: str = "") -> str:
    """What the first page of the documentation is for; it promises no more than it can say."""
    name = name or context.material.product_name
    if _intro_claim(context):
        return f"What {name} does, and the pages that show how to use it."
    return f"The pages that show how to use {name}."


def _scope_short(context: Context) -> str:
    return _scope(context, "it")


def _version(context: Context) -> str:
    claim_id = context.material.version_claim
    return context.material.say(claim_id) if claim_id else ""


def _features(context: Context) -> str:
    return claims(context, _without_intro(context)[: context.items])


def _features_short(context: Context) -> str:
    return claims(context, _without_intro(context)[: context.items // 2])


def _without_intro(context: Context) -> list[str]:
    """The features that the introduction does not name; those of the product itself first."""
    material = context.material
    said = _intro_claim(context)
    found = [each for each in material.group("key_features") if each != said]
    name = material.product_name
    return sorted(found, key=lambda e: not material.claims[e]["claim_text"].startswith(name))


def _requirements(context: Context) -> str:
    return claims(context, context.material.requirements[: context.items])


def _limitations(context: Context) -> str:
    return claims(context, context.material.group("limitations")[: context.items])


def _install(context: Context) -> str:
    """The way that the manifest names first, in the words of its claim."""
    material = context.material
    for way in material.facts.get("distribution", ()):
        if way.get("install_commands"):
            tool = _TOOLS.get(way["method"], "")
            lead = f"Install {material.product_name}" + (f" with {tool}:" if tool else ":")
            if way.get("claim_id") in material.claims:
                lead = material.say(way["claim_id"], lead)
            return f"{lead}\n\n" + fence("bash", way["install_commands"][0])
    return ""


_TOOLS: Mapping[str, str] = {
    "pip": "pip",
    "npm": "npm",
    "nuget": "NuGet",
    "maven": "Maven",
    "cargo": "Cargo",
    "go": "Go",
    "composer": "Composer",
    "gem": "RubyGems",
    "docker": "Docker",
}


def _license(context: Context) -> str:
    claim_id = context.material.facts.get("license", {}).get("claim_id", "")
    return context.material.say(claim_id) if claim_id in context.material.claims else ""


def _formats(context: Context) -> str:
    known = context.material.claims
    rows = [
        f"| {each['format']} | {_DIRECTIONS[each.get('direction', 'unknown')]} "
        f"{marker(each['claim_id'])} |"
        for each in context.material.facts["supported_formats"]
        if each["status"] == "implemented" and each["claim_id"] in known
    ]
    return _rows(("Format", "Support"), rows[: context.rows])


_DIRECTIONS: Mapping[str, str] = {
    "import": "Reads",
    "export": "Writes",
    "both": "Reads and writes",
    "unknown": "Known",
}


def _import_names(context: Context) -> list[str]:
    ways = context.material.facts.get("distribution", ())
    return list(dict.fromkeys(name for way in ways for name in way.get("import_names", ())))


def _import_check(context: Context) -> str:
    names = _import_names(context)
    if not names or context.material.config.get("target_platform") != "python":
        return ""
    text = f"Import `{names[0]}`. The command prints nothing when the package is there:"
    return f"{text}\n\n" + fence("bash", f'python -c "import {names[0]}"')


def _import(context: Context) -> str:
    material = context.material
    names = _import_names(context)
    found = [
        each
        for each in material.group("quickstart_steps")
        if any(name in material.claims[each]["claim_text"] for name in names)
    ]
    return claims(context, found[:1])


def _import_trouble(context: Context) -> str:
    install, name = _install(context), _import(context)
    if not install or not name:
        return ""
    return f"{name}\n\nMake sure that it is in the environment that runs the program.\n\n{install}"


HEADS = ("What it is", "What it means", "What it does")
"""Of the table of classes, of errors, of functions."""


def _subject_part(number: int) -> Callable[[Context], str]:
    """A table of a module: its functions (2), its classes (0), or what it raises (1)."""

    def make(context: Context) -> str:
        symbols = context.subject.symbols if context.subject else ()
        names = {each["name"] for each in context.material.functions}
        classes = [each for each in symbols if each["name"] not in names]
        parts = (*split(classes), [each for each in symbols if each["name"] in names])
        return table(context.material, parts[number], context.rows, HEADS[number])

    return make


def _api_part(number: int) -> Callable[[Context], str]:
    """The same of the whole product, without the modules that have pages of their own."""

    def make(context: Context) -> str:
        parts: tuple[Sequence[Symbol], ...] = (
            *split(context.material.classes),
            context.material.functions,
        )
        told = {each.title for each in context.children}
        modules = {
            each["path"]: each["name"]
            for each in context.material.facts["api_surface_summary"]["modules"]
        }
        here = [each for each in parts[number] if modules.get(each["path"]) not in told]
        return table(context.material, here, context.rows // 2, HEADS[number])

    return make


def _known_errors(context: Context) -> str:
    """What is raised, as far as the source says what it means."""
    material = context.material
    told = [each for each in split(material.classes)[1] if described(material, each)]
    return table(material, told, context.rows // 2, HEADS[1])


def _next_steps(context: Context) -> str:
    return _links(context.related)


def _child_pages(context: Context) -> str:
    return _links(context.children)


def _links(pages: Sequence[Neighbour]) -> str:
    return "\n".join(f"- [{each.title}]({each.url}): {_lowered(each.purpose)}" for each in pages)


def _lowered(text: str) -> str:
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text


def _rows(heads: Sequence[str], rows: Sequence[str]) -> str:
    if not rows:
        return ""
    top = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    return "\n".join([*top, *rows])


TOKENS: Mapping[str, Callable[[Context], str]] = {
    "PRODUCT_NAME": _scalar("product_name"),
    "VERSION": _version,
    "INTRO": _intro,
    "SCOPE": _scope,
    "SCOPE_SHORT": _scope_short,
    "FEATURES": _features,
    "FEATURES_SHORT": _features_short,
    "REQUIREMENTS": _requirements,
    "LIMITATIONS": _limitations,
    "INSTALL_COMMANDS": _install,
    "IMPORT": _import,
    "IMPORT_CHECK": _import_check,
    "IMPORT_TROUBLE": _import_trouble,
    "LICENSE": _license,
    "FORMATS": _formats,
    "FIRST_EXAMPLE": tasks.first_example,
    "MORE_EXAMPLES": tasks.more_examples,
    "WORKFLOWS": tasks.workflows,
    "CODE_NOTE": tasks.code_note,
    "SUBJECT_TITLE": tasks.subject_title,
    "SUBJECT_LEAD": tasks.subject_lead,
    "SUBJECT_CODE": tasks.subject_code,
    "SUBJECT_SYMBOLS": tasks.subject_symbols,
    "SUBJECT_CLASSES": _subject_part(0),
    "SUBJECT_FUNCTIONS": _subject_part(2),
    "SUBJECT_ERRORS": _subject_part(1),
    "API_CLASSES": _api_part(0),
    "API_FUNCTIONS": _api_part(2),
    "API_ERRORS": _api_part(1),
    "KNOWN_ERRORS": _known_errors,
    "NEXT_STEPS": _next_steps,
    "CHILD_PAGES": _child_pages,
}
"""Every token that a template may use."""
