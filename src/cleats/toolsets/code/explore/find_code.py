"""The tool `find_code`: the best declarations for a question, with the lines that match."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.facts import Chunk
from cleats.toolsets.code.analysis.kinds import resolve_kinds
from cleats.toolsets.code.explore.answer_text import AnswerText, shorten_line
from cleats.toolsets.code.explore.changed_files import ChangedFiles
from cleats.toolsets.code.explore.declarations import (
    UNNAMED_KINDS,
    DeclarationReader,
    FileDeclarations,
    render_signature,
)
from cleats.toolsets.code.explore.live_ranking import (
    RankedDeclaration,
    extract_stems,
    pick_lines,
    rank_declarations,
    scan_repository,
)
from cleats.toolsets.code.explore.paths import make_globs
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.search.tool import SearchTool

DEFAULT_HITS: Final = 5
MAX_HITS: Final = 50

SHOWN_LINES: Final = 4
"""Lines of a hit that are shown besides its signature."""

WHOLE_DECLARATION_LINES: Final = 6
"""Lines up to which a declaration is shown whole."""

REGEX_SIGNS: Final = re.compile(r"\\[bdswBDSW.()\[\]]|\.\*|\.\+|\[\^|\(\?|\w\|\w|^\^|\$$")
"""Signs that a question is meant as a regular expression."""


class CodeHit(NamedTuple):
    """A declaration that was found, and why."""

    file: FileDeclarations
    chunk: Chunk
    reason: str


class CodeFinder:
    """Finds declarations by words, by name or by meaning."""

    def __init__(self, search_tool: "SearchTool", reader: DeclarationReader, changed_files: ChangedFiles) -> None:
        self._search_tool = search_tool
        self._reader = reader
        self._changed_files = changed_files

    def find(
        self, repository: Repository, args: Mapping[str, Any], status: str, is_cancelled: Callable[[], bool]
    ) -> str:
        """Answer a question; `status` says how far a build is, if there is no index yet."""
        accepts = _make_acceptor(args)
        try:
            hits = self._search_index(repository, args, accepts, is_cancelled)
            note = ""
        except ToolError as error:
            if error.code is not ErrorCode.NO_INDEX:
                raise
            ranked = scan_repository(
                repository.root,
                args["query"],
                self._reader,
                accepts,
                globs=make_globs(args),
                is_cancelled=is_cancelled,
            )
            hits = [_explain_live_hit(item, args["query"]) for item in ranked]
            note = f"No index yet{f' ({status})' if status else ''}; ranked by words from a live scan."
        return _render_hits(hits, args, note)

    def _search_index(
        self,
        repository: Repository,
        args: Mapping[str, Any],
        accepts: Callable[[FileDeclarations, Chunk], bool],
        is_cancelled: Callable[[], bool],
    ) -> list[CodeHit]:
        from cleats.toolsets.code.search.retrieval import search_generation  # noqa: PLC0415 - loads numpy

        wanted = args["offset"] + args["limit"]
        search_args = {"query": args["query"], "mode": "code", "output": "compact", "top": min(1000, 3 * wanted + 20)}
        search_args |= {"path": args["path"]} if args.get("path") else {}
        search_args |= {"lang": args["language"]} if args.get("language") else {}
        search_args |= {"type": args["kind"]} if args.get("kind") else {}
        request = self._search_tool.make_request(search_args, repository)
        with self._search_tool.open_engine(repository) as engine:
            changed = self._changed_files.find(repository, engine.folder)
            result = search_generation(engine, request)
            with engine.hit_source.open_reader() as rows:
                found = [
                    (rows.read_row(hit.path, hit.ordinal), hit)
                    for mode_hits in result.hits.values()
                    for hit in mode_hits
                ]
        kept = [(row, hit) for row, hit in found if row.path not in changed]
        files = self._reader.read_files(repository.root, [row.path for row, _ in kept[: wanted + 5]], is_cancelled)
        indexed = [
            CodeHit(file, chunk, _explain_index_hit(hit.fused.ranks, hit.fused.parts))
            for row, hit in kept
            if (file := files.get(row.path)) and (chunk := _locate_chunk(file, row.name, row.start_line)) is not None
        ]
        present = [path for path in changed if (repository.root / path).is_file()]
        if not present:
            return indexed
        fresh = self._reader.read_files(repository.root, present, is_cancelled)
        return _merge_changed(indexed, list(fresh.values()), args["query"], accepts)


def _merge_changed(
    indexed: Sequence[CodeHit],
    changed: Sequence[FileDeclarations],
    question: str,
    accepts: Callable[[FileDeclarations, Chunk], bool],
) -> list[CodeHit]:
    """Insert the declarations of changed files before the first indexed hit that matches less well."""
    stems = extract_stems(question)
    indexed_files = {hit.file.path: hit.file for hit in indexed}
    ranked = rank_declarations([*indexed_files.values(), *changed], stems, accepts)
    scores = {(item.file.path, item.chunk.start): item.score for item in ranked}
    changed_paths = {file.path for file in changed}
    merged = list(indexed)
    for item in ranked:
        if item.file.path not in changed_paths:
            continue
        place = next(
            (
                position
                for position, hit in enumerate(merged)
                if scores.get((hit.file.path, hit.chunk.start), 0.0) < item.score
            ),
            len(merged),
        )
        merged.insert(place, _explain_live_hit(item, question))
    return merged


def _locate_chunk(file: FileDeclarations, name: str, start_line: int) -> Chunk | None:
    same_name = [chunk for chunk in file.chunks if chunk.name == name]
    return min(same_name, key=lambda chunk: abs(chunk.start_line - start_line), default=None)


def _make_acceptor(args: Mapping[str, Any]) -> Callable[[FileDeclarations, Chunk], bool]:
    kinds = frozenset(resolve_kinds(args["kind"])) if args.get("kind") else None
    language = (args.get("language") or "").lower()

    def accepts(file: FileDeclarations, chunk: Chunk) -> bool:
        is_wanted_kind = chunk.kind in kinds if kinds else chunk.kind not in {"comment", "docstring"}
        return is_wanted_kind and (not language or _is_language(file, language))

    return accepts


def _is_language(file: FileDeclarations, language: str) -> bool:
    from cleats.toolsets.code.analysis.languages.language_names import resolve_language_ids  # noqa: PLC0415

    return file.lang in (resolve_language_ids(language) or (language,))


def _explain_index_hit(ranks: Mapping[str, int], parts: Mapping[str, float]) -> str:
    reasons = []
    if "symbol" in parts or "mention" in parts:
        reasons.append("name")
    if any(name != "meaning" for name in ranks):
        reasons.append("words")
    if "meaning" in ranks:
        reasons.append("meaning")
    return "+".join(reasons)


def _explain_live_hit(item: RankedDeclaration, question: str) -> CodeHit:
    stems = set(extract_stems(question))
    from cleats.toolsets.code.index.tokens import stem_text  # noqa: PLC0415 - shared with the index

    is_named = not stems.isdisjoint(stem_text(item.chunk.name).split())
    return CodeHit(item.file, item.chunk, "name+words" if is_named else "words")


def _render_hits(hits: Sequence[CodeHit], args: Mapping[str, Any], note: str) -> str:
    stems = extract_stems(args["query"])
    page = hits[args["offset"] : args["offset"] + args["limit"]]
    answer = AnswerText(args["tokens"])
    shown = 0
    for path, group in groupby(page, key=lambda hit: hit.file.path):
        group_hits = list(group)
        for position, hit in enumerate(group_hits):
            block = _render_hit(hit, stems)
            if not answer.add_block([path, *block] if position == 0 else block):
                break
            shown += 1
        else:
            continue
        break
    remarks = [note] if note else []
    if not hits:
        remarks.append("Nothing found. Try other words, or grep_code for an exact text.")
    elif REGEX_SIGNS.search(args["query"]):
        remarks.append(
            "The query looks like a regular expression; it was read as words. Use grep_code with regex=true."
        )
    elif all(hit.reason == "meaning" for hit in page):
        remarks.append("No declaration has these words; these are the nearest in meaning.")
    next_offset = args["offset"] + shown
    header = f"Best {args['offset'] + 1}-{next_offset}; more: offset={next_offset}." if shown else ""
    return answer.render(" ".join(filter(None, [header, *remarks])))


def _render_hit(hit: CodeHit, stems: Sequence[str]) -> list[str]:
    chunk, lines = hit.chunk, hit.file.lines
    last = min(chunk.end_line, len(lines))
    block = [f" {chunk.start_line}-{last} {chunk.kind} {chunk.name} [{hit.reason}]"]
    if last - chunk.start_line < WHOLE_DECLARATION_LINES:
        numbers = list(range(chunk.start_line, last + 1))
    else:
        numbers = pick_lines(lines, chunk.start_line, last, stems, SHOWN_LINES)
        signature = render_signature(chunk)
        if signature and chunk.start_line not in numbers and chunk.kind not in UNNAMED_KINDS:
            block.append(f"  {signature}")
    return [*block, *(f"  {number}: {shorten_line(lines[number - 1].strip(), 120)}" for number in numbers)]
