"""The tool `find_references`: where a symbol is used, by kind of use, with the line's text."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.answer_text import AnswerText, describe_page, limit_line_count, shorten_line
from cleats.toolsets.code.explore.declarations import DeclarationReader, FileDeclarations, get_last_name
from cleats.toolsets.code.explore.grep_code import order_paths
from cleats.toolsets.code.explore.paths import make_globs
from cleats.toolsets.code.explore.ripgrep import TextHit
from cleats.toolsets.code.explore.symbols import FoundDeclaration, find_declarations, split_symbol
from cleats.toolsets.code.repository import Repository

MAX_PARSED_FILES: Final = 80
"""Files whose uses are told apart; further files are listed by their lines alone."""

MAX_CALLEES: Final = 60

_IMPORT_PATTERN: Final = re.compile(
    r"^\s*(?:from\s+\S+\s+import\b|import\b|use\s|using\s|#\s*include\b|export\b.*\bfrom\b|require\b)|\brequire\s*\("
)
_COMMENT_PATTERN: Final = re.compile(r"^\s*(?:#(?!\[|include|define)|//|\*|/\*|--|<!--|\"\"\"|''')")


class Reference(NamedTuple):
    """One use of a symbol."""

    hit: TextHit
    role: str
    owner: str
    is_likely: bool


def find_references(
    repository: Repository, args: Mapping[str, Any], reader: DeclarationReader, is_cancelled: Callable[[], bool]
) -> str:
    """List the uses of a symbol, or what it calls.

    Raises:
        ToolError: NOT_FOUND, nothing has that name.
    """
    name = args["name"]
    found = find_declarations(repository, name, reader, (), is_cancelled)
    if args["direction"] == "callees":
        return _list_callees(repository, found, args, is_cancelled)
    last_name = split_symbol(name)[-1]
    hits, _ = ripgrep.search_lines(repository.root, last_name, whole_words=True, globs=make_globs(args))
    if not hits:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"{last_name!r} does not occur in the files.",
            hint="Check the spelling, or use find_code with words.",
        )
    paths = order_paths(list({hit.path for hit in hits}))
    files = reader.read_files(repository.root, paths[:MAX_PARSED_FILES], is_cancelled)
    references = _classify_hits(hits, paths, files, found, last_name)
    if args.get("kind"):
        references = [reference for reference in references if reference.role == args["kind"]]
    same_name = found if name == last_name else find_declarations(repository, last_name, reader, (), is_cancelled)
    return _render_references(references, same_name, last_name, args)


def _classify_hits(
    hits: Sequence[TextHit],
    paths: Sequence[str],
    files: Mapping[str, FileDeclarations],
    found: Sequence[FoundDeclaration],
    name: str,
) -> list[Reference]:
    by_path: dict[str, list[TextHit]] = {path: [] for path in paths}
    for hit in hits:
        by_path[hit.path].append(hit)
    defining_modules = {PurePosixPath(item.file.path).stem for item in found}
    defining_paths = {item.file.path for item in found}
    owners = {get_last_name(item.chunk.name.rpartition(".")[0]) for item in found if "." in item.chunk.name}
    references = []
    for path in paths:
        file = files.get(path)
        is_likely = path in defining_paths or _imports_any(file, {*defining_modules, name})
        for hit in by_path[path]:
            role, owner = _classify_hit(hit, file, name, owners)
            if role:
                references.append(Reference(hit, role, owner, is_likely))
    return references


def _imports_any(file: FileDeclarations | None, names: Iterable[str]) -> bool:
    if file is None:
        return False
    imported = {part for module in file.imports for part in re.split(r"[./:\\]+", module)}
    return not imported.isdisjoint(names)


def _classify_hit(hit: TextHit, file: FileDeclarations | None, name: str, owners: set[str]) -> tuple[str, str]:
    """Return the role of a use and its enclosing declaration; no role for definitions and comments."""
    chunk = file.find_enclosing(hit.line) if file else None
    owner = chunk.name if chunk else ""
    if chunk is not None and get_last_name(chunk.name) == name and _is_definition_line(hit, chunk, name):
        is_override = bool(owners) and get_last_name(chunk.name.rpartition(".")[0]) not in owners
        return ("override", owner) if is_override and _extends(file, chunk, owners) else ("", owner)
    if _IMPORT_PATTERN.search(hit.text):
        return "import", owner
    if chunk is not None and hit.line <= chunk.start_line + 3 and _has_base(chunk, name):
        return "subclass", owner
    return _classify_use(hit, file, chunk, name), owner


def _has_base(chunk: Chunk, name: str) -> bool:
    return any(get_last_name(re.sub(r"[<\[(].*", "", base)) == name for base in chunk.bases)


def _classify_use(hit: TextHit, file: FileDeclarations | None, chunk: Chunk | None, name: str) -> str:
    if _COMMENT_PATTERN.match(hit.text):
        return "mention"
    if re.search(rf"\b{re.escape(name)}\s*!?\s*(?:<[^<>]*>|\[[^\[\]]*\])?\(", hit.text):
        return "call"
    if chunk is not None and file is not None and not _uses_name(file, hit.line, name):
        return "mention"
    return "use"


def _is_definition_line(hit: TextHit, chunk: Chunk, name: str) -> bool:
    body_start = chunk.start_line + chunk.signature.count("\n") + len(chunk.decorators) + 1
    return (
        hit.line <= body_start
        and re.search(
            rf"(?<![.\w]){re.escape(name)}\s*[(<:=\[{{]|\b{re.escape(name)}\s*$|\b\w+\s+{re.escape(name)}\b", hit.text
        )
        is not None
    )


def _extends(file: FileDeclarations | None, chunk: Chunk, owners: set[str]) -> bool:
    if file is None:
        return False
    owner_name = chunk.name.rpartition(".")[0]
    containers = [other for other in file.declarations if other.name == owner_name]
    return any(get_last_name(base) in owners for other in containers for base in other.bases)


def _uses_name(file: FileDeclarations, line: int, name: str) -> bool:
    around = [chunk for chunk in file.chunks if chunk.start_line <= line <= chunk.end_line]
    return not file.chunks or any(
        name in re.split(r"[.\[\]:>()\-]+", used)
        for chunk in around
        for used in (
            *chunk.uses,
            *chunk.calls,
            *chunk.decorators,
            *chunk.bases,
            *chunk.params,
            *chunk.throws,
            chunk.return_type,
            *(fact.type for fact in chunk.types),
        )
    )


def _render_references(
    references: Sequence[Reference], found: Sequence[FoundDeclaration], name: str, args: Mapping[str, Any]
) -> str:
    shown_references = [reference for reference in references if reference.role != "mention"]
    mentions = len(references) - len(shown_references)
    counts = Counter(reference.role for reference in shown_references)
    offset, shown, path, owner = args["offset"], 0, "", ""
    answer = AnswerText(args["tokens"], reserved_tokens=150)
    for reference in shown_references[offset : offset + limit_line_count(args["tokens"])]:
        hit = reference.hit
        block = [] if hit.path == path else [f"{hit.path}{'' if reference.is_likely else ' (?)'}"]
        label = f" [{reference.owner}]" if reference.owner and (block or reference.owner != owner) else ""
        role = "" if reference.role == "call" else f" {reference.role}:"
        block.append(f" {hit.line}:{label}{role} {shorten_line(hit.text.strip(), 120)}")
        if not answer.add_block(block):
            break
        shown, path, owner = shown + 1, hit.path, reference.owner
    summary = ", ".join(f"{count} {_pluralize(role, count)}" for role, count in counts.most_common()) or "no uses"
    header = [f"{name}: {summary}{f' (and {mentions} in comments or text)' if mentions else ''}"]
    header.append(_describe_certainty(found, shown_references))
    if shown < len(shown_references):
        header.append(describe_page(shown, len(shown_references), offset, "uses"))
    return answer.render("; ".join(filter(None, header)))


def _pluralize(role: str, count: int) -> str:
    return role if count == 1 else f"{role}es" if role.endswith("s") else f"{role}s"


def _describe_certainty(found: Sequence[FoundDeclaration], references: Sequence[Reference]) -> str:
    if not found:
        return "defined outside of this repository"
    places = ", ".join(f"{item.file.path}:{item.chunk.start_line}" for item in found[:3])
    if len(found) == 1:
        return f"defined once, at {places}, so uses are certain by name"
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    doubtful = any(not reference.is_likely for reference in references)
    mark = "; (?) marks files that do not import it" if doubtful else ""
    return f"defined {len(found)} times ({places}{more}), so uses are distinguished by name and imports only{mark}"


def _list_callees(
    repository: Repository,
    found: Sequence[FoundDeclaration],
    args: Mapping[str, Any],
    is_cancelled: Callable[[], bool],
) -> str:
    if not found:
        raise ToolError(
            ErrorCode.NOT_FOUND, f"No declaration is named {args['name']!r}.", hint="Try find_code with a part of it."
        )
    item = found[0]
    prefix = f"{item.chunk.name}."
    chunks = [item.chunk, *(chunk for chunk in item.file.declarations if chunk.name.startswith(prefix))]
    calls = list(dict.fromkeys(call for chunk in chunks for call in chunk.calls))[:MAX_CALLEES]
    answer = AnswerText(args["tokens"], reserved_tokens=100)
    definitions = _find_definitions(repository, {get_last_name(call) for call in calls})
    for call in calls:
        places = definitions.get(get_last_name(call), [])
        where = f" -> {', '.join(places[:2])}{f' +{len(places) - 2}' if len(places) > 2 else ''}" if places else ""
        if is_cancelled() or not answer.add_block([f" {_find_call_line(item, call)}: {call}{where}"]):
            break
    title = f"{item.file.path}:{item.chunk.start_line} {item.chunk.kind} {item.chunk.name}"
    return answer.render(f"{title} calls {len(calls)} names; places are definitions of the same name")


def _find_call_line(item: FoundDeclaration, call: str) -> int:
    pattern = re.compile(rf"\b{re.escape(get_last_name(call))}\s*!?[(<]")
    lines = item.file.lines
    numbers = range(item.chunk.start_line, min(item.chunk.end_line, len(lines)) + 1)
    return next((number for number in numbers if pattern.search(lines[number - 1])), item.chunk.start_line)


def _find_definitions(repository: Repository, names: Iterable[str]) -> dict[str, list[str]]:
    """Return where each name is defined, by the words that begin a definition; code before tests."""
    wanted = sorted(name for name in names if re.fullmatch(r"\w+", name))
    if not wanted:
        return {}
    alternatives = "|".join(wanted)
    pattern = (
        rf"\b(?:def|class|func|function|fn|fun|struct|macro_rules!)\s+(?:\([^)]*\)\s*)?({alternatives})\b"
        rf"|^\s*(?:export\s+)?(?:const|let|var)\s+({alternatives})\s*="
    )
    hits, _ = ripgrep.search_lines(repository.root, pattern, is_regex=True)
    places: dict[str, list[str]] = {}
    ranks = {path: rank for rank, path in enumerate(order_paths(list({hit.path for hit in hits})))}
    for hit in sorted(hits, key=lambda hit: (ranks[hit.path], hit.line)):
        matched = re.search(pattern, hit.text)
        if matched:
            places.setdefault(matched[1] or matched[2], []).append(f"{hit.path}:{hit.line}")
    return places
