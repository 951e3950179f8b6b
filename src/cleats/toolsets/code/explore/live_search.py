"""Answers of `search` while the first index is being built.

The files that have the most words of the query are indexed for this one answer, in a folder that is removed
afterwards. So everything that a search asks of single files holds as it does later. What only the whole repository
shows is refused, never ignored.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.analysis.history.head import read_head
from cleats.toolsets.code.explore.declaration_ranking import MAX_CANDIDATE_FILES
from cleats.toolsets.code.explore.file_ranking import extract_stems, get_file_size, rank_files
from cleats.toolsets.code.index.catalogue import IndexCatalogue
from cleats.toolsets.code.index.catalogue_schema import CATALOGUE_FILE_NAME
from cleats.toolsets.code.index.file_reader import FileReader, ReadTask
from cleats.toolsets.code.index.ingest import ingest_files
from cleats.toolsets.code.index.options import INDEX_MODES, BuildOptions
from cleats.toolsets.code.index.progress import ProgressCounter
from cleats.toolsets.code.index.shard_writer import write_shards
from cleats.toolsets.code.query.arguments import ARGUMENTS_BY_NAME
from cleats.toolsets.code.query.filters import NegatedCondition, PatternCondition, SearchFilter, matches_pattern
from cleats.toolsets.code.query.request import SearchRequest
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.search.output import render_answer
from cleats.toolsets.code.search.ranking import plan_search
from cleats.toolsets.code.search.retrieval import search_generation

REPOSITORY_TOPICS: Final = frozenset({"risk", "history"})
"""Topics of filters that need the history or the calls of the whole repository."""


def search_live(repository: Repository, request: SearchRequest, options: BuildOptions) -> dict[str, Any]:
    """Search the files that have the most words of a query; return an answer as from an index.

    Raises:
        ToolError: NO_INDEX, the request needs the index.
    """
    if reasons := sorted(set(_find_obstacles(request))):
        raise ToolError(
            ErrorCode.NO_INDEX,
            f"{repository.root} has no index yet, and without one this search is not possible: {', '.join(reasons)}.",
            hint="The index is being built; index_status says how far it is. Search again later, or without these.",
            retryable=True,
        )
    root, question = repository.root, " ".join(plan_search(request).words)
    paths = [path for path in rank_files(root, question).scores if _is_wanted_path(request, path)][:MAX_CANDIDATE_FILES]
    return search_paths(repository, request, options, paths)


def search_paths(
    repository: Repository, request: SearchRequest, options: BuildOptions, paths: list[str]
) -> dict[str, Any]:
    """Search some files, which are indexed for this one answer."""
    with TemporaryDirectory(prefix="cleats-live-") as folder:
        _write_generation(Path(folder), repository.root, paths, options)
        engine = SearchEngine.open(Path(folder))
        try:
            return render_answer(engine, search_generation(engine, request))
        finally:
            engine.close()


def _find_obstacles(request: SearchRequest) -> Iterator[str]:
    yield from find_repository_needs(request)
    if request.branch:
        yield "branch compares with an index"
    if not extract_stems(" ".join(plan_search(request).words)):
        yield "the query has no words to look for"


def find_repository_needs(request: SearchRequest) -> Iterator[str]:
    """Yield the parts of a request that only an index of the whole repository can answer."""
    for search_filter in request.filters:
        if ARGUMENTS_BY_NAME[search_filter.argument].topic in REPOSITORY_TOPICS:
            yield f"{search_filter.argument} needs facts about the whole repository"
    if "records" in request.modes:
        yield "records are found only in an index"
    if request.backend not in {"auto", "tantivy"}:
        yield f"the backend {request.backend} needs an index"


def _is_wanted_path(request: SearchRequest, path: str) -> bool:
    return all(
        _matches_place(search_filter, path)
        for search_filter in request.filters
        if search_filter.column in {"path", "ext"}
    )


def _matches_place(search_filter: SearchFilter, path: str) -> bool:
    condition = search_filter.condition
    is_negated = isinstance(condition, NegatedCondition)
    pattern_condition = condition.condition if isinstance(condition, NegatedCondition) else condition
    assert isinstance(pattern_condition, PatternCondition), search_filter  # noqa: S101 - so is every filter of a place
    value = path if search_filter.column == "path" else os.path.splitext(path)[1].lower().lstrip(".")  # noqa: PTH122
    patterns = pattern_condition.patterns
    return is_negated is not any(matches_pattern(item, value, cased=pattern_condition.cased) for item in patterns)


def _write_generation(folder: Path, root: Path, paths: list[str], options: BuildOptions) -> None:
    tasks = [ReadTask(path, os.fspath(root / path), "", "code", get_file_size(root / path)) for path in paths]
    repository_options = options.for_repository(root)
    reader = FileReader(frozenset(INDEX_MODES), True, options.limits, repository_options.rule_files)
    head = read_head(root)
    with IndexCatalogue.create(folder / CATALOGUE_FILE_NAME) as catalogue:
        counter = ProgressCounter(lambda _: None, "read", "files", len(tasks))
        ingest_files(catalogue, tasks, reader, options.workers, counter)
        catalogue.set_meta({"branch": head[1] if head else None, "vectors": True})
        catalogue.commit()
    write_shards(folder, None, lambda _: None)
