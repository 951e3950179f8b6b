"""The tool `find_code`: the best declarations for a question, with the lines that match."""

import re
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.kinds import resolve_kinds
from cleats.toolsets.code.explore.answer_text import AnswerText, shorten_line
from cleats.toolsets.code.explore.changed_files import ChangedFiles
from cleats.toolsets.code.explore.declaration_ranking import (
    MAX_CANDIDATE_FILES,
    RankedDeclaration,
    pick_excerpt,
    pick_lines,
    rank_declarations,
)
from cleats.toolsets.code.explore.declarations import (
    UNNAMED_KINDS,
    DeclarationReader,
    FileDeclarations,
    get_last_name,
    render_signature,
)
from cleats.toolsets.code.explore.file_ranking import FileRanking, extract_stems, rank_files
from cleats.toolsets.code.explore.paths import make_globs
from cleats.toolsets.code.index.tokens import find_identifiers
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.search.tool import SearchTool

DEFAULT_HITS: Final = 5
MAX_HITS: Final = 50

DETAILED_LINES: Final = (12, 3, 2)
"""Lines that are shown of the first hits besides their signatures; the others take one line each."""

OTHER_DECLARATIONS: Final = (3, 2, 1)
"""Further declarations of the same file that are shown with the first hits, a line each: the right file is found more
often than the right declaration in it."""

NAMED_DECLARATIONS: Final = (6, 4, 3)
"""Declarations of the same file that are named after those, with their first lines: on 69 training tasks they brought
a changed one into 55 answers instead of 49, for 240 bytes an answer."""

CLEAR_LEAD_LINES, CLEAR_LEAD_HITS = (16,), 3
"""The same where the first hit leads clearly, and how many hits are shown then."""

DECLARATION_WEIGHT, DECLARED_IDENTIFIER_WEIGHT = 0.2, 0.2
"""What the best declaration of all, and a declared identifier of the question, are worth, in shares of the score of
the best file."""

CLEAR_LEAD_RATIO: Final = 1.5
"""How many times the score of the second file the first one must have to lead clearly: on 144 training tasks it was
right for 29 of 31 then, and with 1.3 for 41 of 49."""

CLEAR_LEAD_TEXT: Final = "clear lead"

SIGNATURE_START_CHARS: Final = 30
"""Characters by which a line is recognized as the signature that need not be shown twice."""

MIN_MENTION_SCORE: Final = 0.3
"""How well an earlier commit must fit to be shown with its file."""

MAX_SUBJECT_CHARS: Final = 80

WHOLE_DECLARATION_LINES: Final = 3
"""Lines up to which a declaration is shown whole."""

MAX_LINE_CHARS: Final = 90
"""Characters of a line that are shown: enough to recognize it."""

OTHER_FILES: Final = 4
"""Files that are named after the hits, because they match as well."""

INDEXED_HITS: Final = 60
"""Hits that the index is asked for: those of one file count once."""

RANK_OFFSET: Final = 3
"""What is added to ranks before their reciprocals are: the less, the more the first ranks count."""

REGEX_SIGNS: Final = re.compile(r"\\[bdswBDSW.()\[\]]|\.\*|\.\+|\[\^|\(\?|\w\|\w|^\^|\$$")
"""Signs that a question is meant as a regular expression."""


class CodeHit(NamedTuple):
    """A declaration that was found."""

    file: FileDeclarations
    chunk: Chunk


class IndexedHit(NamedTuple):
    """A declaration that the index found, where it was when the index was built."""

    path: str
    name: str
    start_line: int


class CodeFinder:
    """Finds declarations by words, by name or by meaning.

    Files are ranked by their words as they are now; the index, where there is one, adds its own ranks of declarations,
    which know meaning and names.
    """

    def __init__(self, search_tool: "SearchTool", reader: DeclarationReader, changed_files: ChangedFiles) -> None:
        self._search_tool = search_tool
        self._reader = reader
        self._changed_files = changed_files

    def find(
        self, repository: Repository, args: Mapping[str, Any], status: str, is_cancelled: Callable[[], bool]
    ) -> str:
        """Answer a question; `status` says how far a build is, if there is no index yet."""
        accepts_path = _make_path_acceptor(args)
        ranking = rank_files(repository.root, args["query"], make_globs(args))
        live_paths = [path for path in ranking.scores if accepts_path(path)]
        note = ""
        try:
            indexed, changed = self._search_index(repository, args)
        except ToolError as error:
            if error.code is not ErrorCode.NO_INDEX:
                raise
            indexed, changed = [], frozenset()
            note = f"No index yet{f' ({status})' if status else ''}."
        indexed_paths = list(dict.fromkeys(hit.path for hit in indexed))
        paths = _fuse_ranks(live_paths, indexed_paths, changed) if indexed else live_paths
        parsed_count = max(MAX_CANDIDATE_FILES, args["offset"] + args["limit"])
        files = self._reader.read_files(repository.root, paths[:parsed_count], is_cancelled)
        ranked = rank_declarations(files.values(), extract_stems(args["query"]), _make_acceptor(args))
        scores = _add_declaration_scores(ranking.scores, files, ranked, frozenset(find_identifiers(args["query"])))
        live_paths = sorted(live_paths, key=lambda path: (-scores[path], path))
        paths = _fuse_ranks(live_paths, indexed_paths, changed) if indexed else live_paths
        files = {path: files[path] for path in paths if path in files}
        hits = _select_hits(files, ranked, indexed, args)
        is_first = bool(hits and live_paths) and hits[0].file.path == paths[0] == live_paths[0]
        has_clear_lead = is_first and _has_clear_lead(scores, live_paths)
        return _render_hits(hits, paths, ranking, args, note, has_clear_lead=has_clear_lead)

    def _search_index(self, repository: Repository, args: Mapping[str, Any]) -> tuple[list[IndexedHit], frozenset[str]]:
        """Return what the index finds in files that have not changed, and the paths of those that have."""
        from cleats.toolsets.code.search.retrieval import search_generation  # noqa: PLC0415 - loads numpy

        top = min(1000, INDEXED_HITS + 3 * (args["offset"] + args["limit"]))
        search_args = {"query": args["query"], "mode": "code", "output": "compact", "top": top}
        search_args |= {"path": args["path"]} if args.get("path") else {}
        search_args |= {"lang": args["language"]} if args.get("language") else {}
        search_args |= {"type": args["kind"]} if args.get("kind") else {}
        request = self._search_tool.make_request(search_args, repository)
        with self._search_tool.open_engine(repository) as engine:
            changed = frozenset(self._changed_files.find(repository, engine.folder))
            result = search_generation(engine, request)
            with engine.hit_source.open_reader() as reader:
                rows = [reader.read_row(hit.path, hit.ordinal) for hits in result.hits.values() for hit in hits]
        hits = [IndexedHit(row.path, row.name, row.start_line) for row in rows if row.path not in changed]
        return hits, changed


def _fuse_ranks(live: Sequence[str], indexed: Sequence[str], changed: Container[str]) -> list[str]:
    """Return the paths of both rankings by the sums of their reciprocal ranks; the index knows no changed file."""
    scores: dict[str, float] = defaultdict(float)
    for rank, path in enumerate(live, RANK_OFFSET):
        scores[path] += (2 if path in changed else 1) / rank
    for rank, path in enumerate(indexed, RANK_OFFSET):
        scores[path] += 1 / rank
    return sorted(scores, key=lambda path: (-scores[path], path))


def _add_declaration_scores(
    scores: Mapping[str, float],
    files: Mapping[str, FileDeclarations],
    ranked: Sequence[RankedDeclaration],
    identifiers: frozenset[str],
) -> dict[str, float]:
    """Return the scores of files with what their declarations add.

    One place that has all words says more than a file that has them, and an identifier is more likely to be about
    the file that declares it than about one that uses it.
    """
    summed = dict(scores)
    if not ranked or not scores:
        return summed
    most = max(scores.values())
    best = {item.file.path: item.score / ranked[0].score for item in reversed(ranked)}
    for path in files.keys() & scores.keys():
        summed[path] += DECLARATION_WEIGHT * most * best.get(path, 0.0)
        names = {get_last_name(chunk.name).replace("_", "").lower() for chunk in files[path].declarations}
        summed[path] += DECLARED_IDENTIFIER_WEIGHT * most * len(names & identifiers)
    return summed


def _has_clear_lead(scores: Mapping[str, float], paths: Sequence[str]) -> bool:
    return len(paths) == 1 or scores[paths[0]] >= CLEAR_LEAD_RATIO * scores[paths[1]]


def _select_hits(
    parsed: Mapping[str, FileDeclarations],
    ranked: Sequence[RankedDeclaration],
    indexed: Sequence[IndexedHit],
    args: Mapping[str, Any],
) -> list[CodeHit]:
    """Return the declarations of files: the best of each, in their order, and then all others."""
    by_path: dict[str, list[Chunk]] = {path: [] for path in parsed}
    for hit in indexed:
        chunk = _locate_chunk(parsed[hit.path], hit.name, hit.start_line) if hit.path in parsed else None
        if chunk is not None and chunk not in by_path[hit.path]:
            by_path[hit.path].append(chunk)
    for item in ranked:
        if item.chunk not in by_path[item.file.path]:
            by_path[item.file.path].append(item.chunk)
    firsts = [CodeHit(parsed[path], chunks[0]) for path, chunks in by_path.items() if chunks]
    others = [CodeHit(parsed[path], chunk) for path, chunks in by_path.items() for chunk in chunks[1:]]
    name = args["query"].strip("` ").removesuffix("()").lower()
    return sorted([*firsts, *others], key=lambda hit: not _is_called(hit.chunk, name))


def _is_called(chunk: Chunk, name: str) -> bool:
    return name in {chunk.name.lower(), get_last_name(chunk.name).lower()}


def _locate_chunk(file: FileDeclarations, name: str, start_line: int) -> Chunk | None:
    same_name = [chunk for chunk in file.chunks if chunk.name == name]
    return min(same_name, key=lambda chunk: abs(chunk.start_line - start_line), default=None)


def _make_acceptor(args: Mapping[str, Any]) -> Callable[[FileDeclarations, Chunk], bool]:
    kinds = frozenset(resolve_kinds(args["kind"])) if args.get("kind") else None

    def accepts(_file: FileDeclarations, chunk: Chunk) -> bool:
        return chunk.kind in kinds if kinds else chunk.kind not in {"comment", "docstring"}

    return accepts


def _make_path_acceptor(args: Mapping[str, Any]) -> Callable[[str], bool]:
    language = (args.get("language") or "").lower()
    if not language:
        return lambda _path: True
    from cleats.toolsets.code.analysis.languages.language_names import (  # noqa: PLC0415
        detect_language_by_path,
        resolve_language_ids,
    )

    wanted = resolve_language_ids(language) or (language,)
    return lambda path: detect_language_by_path(path.rsplit("/", 1)[-1].lower()) in wanted


def _render_hits(
    hits: Sequence[CodeHit],
    paths: Sequence[str],
    ranking: FileRanking,
    args: Mapping[str, Any],
    note: str,
    *,
    has_clear_lead: bool,
) -> str:
    limit = min(args["limit"], CLEAR_LEAD_HITS) if has_clear_lead and not args["offset"] else args["limit"]
    page = hits[args["offset"] : args["offset"] + limit]
    answer = AnswerText(args["tokens"])
    detailed_lines = CLEAR_LEAD_LINES if has_clear_lead and not args["offset"] else DETAILED_LINES
    shown = 0
    for hit in page:
        if shown < len(detailed_lines):
            block = _render_hit(hit, ranking, detailed_lines[shown])
            if not args["offset"]:
                siblings = [other for other in hits if other.file is hit.file and other.chunk is not hit.chunk]
                block += _render_siblings(siblings, ranking, OTHER_DECLARATIONS[shown], NAMED_DECLARATIONS[shown])
            if has_clear_lead and not shown and not args["offset"]:
                block[0] = f"{block[0]} ({CLEAR_LEAD_TEXT})"
        else:
            block = [_summarize_hit(hit, ranking)]
        if not answer.add_block(block):
            break
        shown += 1
    named = {hit.file.path for hit in page[:shown]}
    others = [path for path in paths[: shown + OTHER_FILES] if path not in named][:OTHER_FILES]
    if others and not args["offset"] and shown:
        answer.add_block([f"Also: {' '.join(_group_paths(others))}"])
    remarks = [note] if note else []
    if not hits:
        remarks.append("Nothing found. Try other words, or grep_code for an exact text.")
    elif REGEX_SIGNS.search(args["query"]):
        remarks.append(
            "The query looks like a regular expression; it was read as words. Use grep_code with regex=true."
        )
    if shown and len(hits) > args["offset"] + shown:
        remarks.append(f"More: offset={args['offset'] + shown}")
    return answer.render(footer=" ".join(remarks))


def _group_paths(paths: Sequence[str]) -> list[str]:
    """Return paths in a shell's short form: those of one folder as `folder/{a.py,b.py}`."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, name = path.rpartition("/")
        by_folder.setdefault(folder + slash, []).append(name)
    return [folder + (names[0] if len(names) == 1 else f"{{{','.join(names)}}}") for folder, names in by_folder.items()]


def _render_hit(hit: CodeHit, ranking: FileRanking, line_count: int) -> list[str]:
    """Return the place and the signature of a declaration, the lines that match, and an earlier commit that fits."""
    chunk, lines = hit.chunk, hit.file.lines
    last = min(chunk.end_line, len(lines))
    block = [hit.file.path, f" {chunk.start_line}-{last} {chunk.kind} {_shorten_name(chunk.name)}"]
    if last - chunk.start_line < WHOLE_DECLARATION_LINES:
        numbers = list(range(chunk.start_line, last + 1))
    else:
        numbers = pick_excerpt(lines, chunk.start_line, last, ranking.stem_weights, line_count)
        signature = render_signature(chunk, MAX_LINE_CHARS)
        start = signature[:SIGNATURE_START_CHARS]
        is_shown = any(" ".join(lines[number - 1].split()).startswith(start) for number in numbers)
        if signature and chunk.kind not in UNNAMED_KINDS and not is_shown:
            owner = _shorten_name(chunk.name.removesuffix(get_last_name(chunk.name)).rstrip(".:"), 1)
            block[-1] = f" {chunk.start_line}-{last} {f'[{owner}] ' if owner else ''}{signature}"
    block += [f"  {number}: {shorten_line(lines[number - 1].strip(), MAX_LINE_CHARS)}" for number in numbers]
    mention = ranking.mentions.get(hit.file.path)
    if mention is not None and mention.score >= MIN_MENTION_SCORE and line_count > DETAILED_LINES[1]:
        block.append(f"  past commit: {shorten_line(mention.subject, MAX_SUBJECT_CHARS)}")
    return block


def _render_siblings(siblings: Sequence[CodeHit], ranking: FileRanking, line_count: int, name_count: int) -> list[str]:
    """Return a line of each of the first declarations, and one line with the names of those that follow."""
    lines = [f"  {_summarize_place(sibling, ranking)}" for sibling in siblings[:line_count]]
    named = [hit.chunk for hit in siblings[line_count:] if hit.chunk.kind not in UNNAMED_KINDS][:name_count]
    if named:
        places = [f"{chunk.start_line} {get_last_name(chunk.name)}" for chunk in named]
        lines.append(f"  also: {', '.join(places)}")
    return lines


def _summarize_hit(hit: CodeHit, ranking: FileRanking) -> str:
    """Return the line of a declaration that matches best, with its place and the name of the declaration."""
    return f"{hit.file.path}:{_summarize_place(hit, ranking)}"


def _summarize_place(hit: CodeHit, ranking: FileRanking) -> str:
    chunk, lines = hit.chunk, hit.file.lines
    numbers = pick_lines(lines, chunk.start_line, min(chunk.end_line, len(lines)), ranking.stem_weights, 1)
    number = numbers[0] if numbers else chunk.start_line
    text = shorten_line(lines[number - 1].strip(), MAX_LINE_CHARS)
    name = "" if get_last_name(chunk.name) in text else f"[{_shorten_name(chunk.name)}] "
    return f"{number} {name}{text}"


def _shorten_name(qualified: str, parts: int = 2) -> str:
    """Return the last parts of a qualified name: the path already tells the namespace."""
    return ".".join(qualified.replace("::", ".").split(".")[-parts:])
