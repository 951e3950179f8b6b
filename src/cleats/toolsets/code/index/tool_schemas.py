"""The input and output schemas of the index tools."""

from typing import Any, Final

from cleats.toolsets.code.schema_atoms import (
    COUNT_SCHEMA,
    FLAG_SCHEMA,
    NULLABLE_TEXT_SCHEMA,
    TEXT_SCHEMA,
    array_schema,
    choice_argument,
    count_schema,
    flag_argument,
    flag_schema,
    nullable_object_schema,
    object_schema,
    repeat_schema,
    text_argument,
    text_schema,
)


def _counts_schema(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": COUNT_SCHEMA}


REPO_PATH_SCHEMA: Final = text_argument("Folder of the repository [default: that of the server].")

BUILD_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "repoPath": REPO_PATH_SCHEMA,
    "mode": choice_argument(
        "What to index, in addition to existing content: prose (documents, includes extracted-prose), "
        "extracted-prose (comments and docstrings), records (logs and findings).",
        ("all", "code", "prose", "extracted-prose", "records"),
        default="all",
    ),
    "incremental": flag_argument("Read only changed files; the result equals a full build."),
    "sqlite": flag_schema("Create (true) or drop (false) the index for the backend sqlite-fts [default: unchanged]."),
    "stubEmbeddings": flag_argument("Omit the vectors; searches then use words only."),
    "useArtifacts": flag_argument("Start from an exported index, if artifactsDir has one."),
    "artifactsDir": text_argument(
        "With useArtifacts: folder written by `cleats index export` [default: ci-artifacts]."
    ),
}

_CONTENT_SCHEMAS: Final = {
    "chunks": _counts_schema("Pieces that can be found, by mode."),
    "languages": _counts_schema("Files by language."),
    "problems": array_schema(
        object_schema(path=TEXT_SCHEMA, problem=TEXT_SCHEMA), "The first files that were understood only in part."
    ),
    "problemCount": COUNT_SCHEMA,
    "skippedReasons": _counts_schema("What was left out, by reason."),
}

BUILD_OUTPUT_SCHEMA: Final = object_schema(
    **repeat_schema(TEXT_SCHEMA, "repoPath mode"),
    **repeat_schema(FLAG_SCHEMA, "sqlite vectors incremental"),
    restoredArtifacts=flag_schema("Whether it began from an index that was built elsewhere."),
    generation=text_schema("The name of the index that answers from now on."),
    published=flag_schema("False when the index was up to date, and nothing was written."),
    modes=array_schema(TEXT_SCHEMA, "What the index holds."),
    files=object_schema(
        "What became of the files.",
        total=count_schema("Files in the index now."),
        **repeat_schema(COUNT_SCHEMA, "added changed removed unchanged"),
        skipped=count_schema("Files and folders left out, with those of earlier builds."),
    ),
    **_CONTENT_SCHEMAS,
    seconds={"type": "number", "minimum": 0},
)

_INDEX_SCHEMA: Final = {
    "type": "object",
    "required": ["exists", "outdated"],
    "properties": {
        "exists": FLAG_SCHEMA,
        "outdated": flag_schema("Whether another version of this program wrote it; rebuild it."),
        **repeat_schema(TEXT_SCHEMA, "generation path"),
        "builtAt": {"type": "string", "format": "date-time"},
        "tool": text_schema("The version of this program that built it."),
        "schema": COUNT_SCHEMA,
        **repeat_schema(NULLABLE_TEXT_SCHEMA, "commit branch"),
        "dirty": flag_schema("Whether tracked files had uncommitted changes when it was built."),
        "bytes": COUNT_SCHEMA,
        "modes": array_schema(TEXT_SCHEMA),
        "files": COUNT_SCHEMA,
        **_CONTENT_SCHEMAS,
        "skipped": array_schema(
            object_schema(path=TEXT_SCHEMA, reason=TEXT_SCHEMA, detail=TEXT_SCHEMA), "The first that were left out."
        ),
    },
}

_GIT_SCHEMA: Final = {
    "type": "object",
    "required": ["isRepo"],
    "properties": {
        "isRepo": FLAG_SCHEMA,
        **repeat_schema(NULLABLE_TEXT_SCHEMA, "head branch"),
        "isDirty": FLAG_SCHEMA,
        "warning": TEXT_SCHEMA,
    },
}

STATUS_OUTPUT_SCHEMA: Final = object_schema(
    **repeat_schema(TEXT_SCHEMA, "repoPath repoId cacheRoot repoCacheRoot"),
    git=_GIT_SCHEMA,
    index=_INDEX_SCHEMA,
    freshness=nullable_object_schema(
        "How the index compares with the files; null without one.",
        stale=flag_schema("Whether an update would find anything to do."),
        **repeat_schema(COUNT_SCHEMA, "added changed removed"),
        headMoved=flag_schema("Another commit or branch is checked out."),
        outgrown=flag_schema("This version or its settings would read files otherwise."),
    ),
    build=nullable_object_schema(
        "The build that this server runs in the background; null if none is running.",
        phase=text_schema("wait, look, read, git, risk, lint, search or publish."),
        message=TEXT_SCHEMA,
        done=count_schema("Items of the phase that are done."),
        total=count_schema("Items of the phase; 0 where they are not counted."),
        percent=count_schema("About how much of the whole build is done."),
    ),
    vectors=object_schema("The vectors behind searches by meaning.", available=FLAG_SCHEMA),
    sqlite=object_schema("The full-text index of SQLite.", exists=FLAG_SCHEMA, bytes=COUNT_SCHEMA),
)
