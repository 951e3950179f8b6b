"""Schemas of the arguments and outputs of the download tools."""

from collections.abc import Iterable
from typing import Any, Final

from cleats.toolsets.code.downloads.libraries import ARCH_ALIASES, LIBRARY_NAMES_BY_PROVIDER, PLATFORM_ALIASES
from cleats.toolsets.code.index.tool_schemas import REPO_PATH_SCHEMA, add_description

_COUNT_SCHEMA: Final = {"type": "integer", "minimum": 0}
_TEXT_SCHEMA: Final = {"type": "string"}
_FLAG_SCHEMA: Final = {"type": "boolean"}


def _object_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list_schema(description: str, **properties: Any) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": _object_schema(**properties)}


def _text_argument(description: str, **keywords: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, **keywords, "description": description}


def _choice_argument(description: str, options: Iterable[str], **keywords: Any) -> dict[str, Any]:
    return {"type": "string", "enum": sorted(options), **keywords, "description": description}


def _flag_argument(description: str, *, default: bool = False) -> dict[str, Any]:
    return {"type": "boolean", "default": default, "description": description}


_ADDRESS_DESCRIPTION: Final = (
    "an http(s) or file URL, or a path from the root of the repository, with #sha256=... at its "
    "end to say what must come"
)
_FOLDER_DESCRIPTION: Final = "in the cache or in the repository, absolute or from its root"
_UPDATE_DESCRIPTION: Final = "Ask the source whether it has another version, and take that."
_FORCE_DESCRIPTION: Final = "Download also what is in place and unchanged."

MODELS_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "model": _text_argument("The model that is wanted; without it, the one that searches use."),
    "cacheDir": _text_argument(f"Folder for a model that has to be downloaded, {_FOLDER_DESCRIPTION}."),
}

MODELS_OUTPUT: Final = _object_schema(
    repoPath=_TEXT_SCHEMA,
    model=add_description(_TEXT_SCHEMA, "What vectors are made with."),
    available=add_description(_FLAG_SCHEMA, "Whether it can be used now."),
    shipped=add_description(_FLAG_SCHEMA, "Whether it comes with this program."),
    downloaded=add_description(_FLAG_SCHEMA, "Whether anything was downloaded."),
    output=add_description(_TEXT_SCHEMA, "The folder that it is in."),
    dims=add_description(_COUNT_SCHEMA, "Numbers of one vector."),
    words=add_description(_COUNT_SCHEMA, "Words that it knows."),
    bytes=_COUNT_SCHEMA,
    fingerprint=add_description(_TEXT_SCHEMA, "Other when vectors of the two cannot be compared."),
)

_NAMED_SOURCE_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,63}=."

DICTIONARIES_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "lang": _text_argument(
        "Names of the lists that are wanted, with commas; by default those of url, or all that are known.",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}(,[a-z0-9][a-z0-9._-]{0,63})*$",
    ),
    "url": {
        "description": f"Where lists come from, each as name=source: {_ADDRESS_DESCRIPTION}.",
        "anyOf": [
            {"type": "string", "pattern": _NAMED_SOURCE_PATTERN},
            {
                "type": "array",
                "items": {"type": "string", "pattern": _NAMED_SOURCE_PATTERN},
                "minItems": 1,
                "maxItems": 50,
            },
        ],
    },
    "dir": _text_argument(f"Folder for the lists, {_FOLDER_DESCRIPTION}."),
    "update": _flag_argument(_UPDATE_DESCRIPTION),
    "force": _flag_argument(_FORCE_DESCRIPTION),
}

_SKIPPED_PROPERTIES: Final = {
    "name": _TEXT_SCHEMA,
    "reason": {"type": "string", "enum": ["built-in", "present", "not-modified", "unchanged"]},
}

DICTIONARIES_OUTPUT: Final = _object_schema(
    repoPath=_TEXT_SCHEMA,
    output=add_description(_TEXT_SCHEMA, "The folder with the lists and dictionaries.json, which describes them."),
    downloaded=_list_schema(
        "Lists that are new or other than before.",
        name=_TEXT_SCHEMA,
        url=_TEXT_SCHEMA,
        path=_TEXT_SCHEMA,
        sha256=_TEXT_SCHEMA,
        bytes=_COUNT_SCHEMA,
        words=_COUNT_SCHEMA,
        resumed=add_description(_COUNT_SCHEMA, "Bytes that an earlier call had fetched."),
    ),
    skipped=_list_schema("Lists for which nothing had to be done.", **_SKIPPED_PROPERTIES, words=_COUNT_SCHEMA),
)

_PROVIDER_ARGUMENT: Final = _choice_argument("The extension.", LIBRARY_NAMES_BY_PROVIDER, default="sqlite-vec")
_PLATFORM_ARGUMENT: Final = _choice_argument("The system it is for; this one by default.", PLATFORM_ALIASES)
_ARCH_ARGUMENT: Final = _choice_argument("The processor it is for; this one by default.", ARCH_ALIASES)
_DIR_ARGUMENT: Final = _text_argument(
    f"Folder for extensions, {_FOLDER_DESCRIPTION}; each has a folder provider/platform-arch in it."
)

EXTENSIONS_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "provider": _PROVIDER_ARGUMENT,
    "dir": _DIR_ARGUMENT,
    "out": _text_argument(f"Folder for this extension, new or empty, {_FOLDER_DESCRIPTION}; goes before dir."),
    "platform": _PLATFORM_ARGUMENT,
    "arch": _ARCH_ARGUMENT,
    "url": _text_argument(
        f"Where it comes from: {_ADDRESS_DESCRIPTION}. A zip, a tar (gz, bz2, xz) or the library itself; over "
        "http only with a sha256. Without it, where it came from before."
    ),
    "update": _flag_argument(_UPDATE_DESCRIPTION),
    "force": _flag_argument(_FORCE_DESCRIPTION),
}

EXTENSIONS_OUTPUT: Final = _object_schema(
    repoPath=_TEXT_SCHEMA,
    provider=_TEXT_SCHEMA,
    platform=_TEXT_SCHEMA,
    arch=_TEXT_SCHEMA,
    output=add_description(_TEXT_SCHEMA, "The folder of the extension."),
    extensionPath=add_description(_TEXT_SCHEMA, "The library."),
    downloaded=_list_schema(
        "What came.",
        name=_TEXT_SCHEMA,
        url=_TEXT_SCHEMA,
        sha256=_TEXT_SCHEMA,
        bytes=_COUNT_SCHEMA,
        files=add_description(_COUNT_SCHEMA, "Files that were put in place."),
        resumed=add_description(_COUNT_SCHEMA, "Bytes that an earlier call had fetched."),
    ),
    skipped=_list_schema("What did not have to come.", **_SKIPPED_PROPERTIES),
)

_IDENTIFIER_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"

VERIFY_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "provider": _PROVIDER_ARGUMENT,
    "dir": _DIR_ARGUMENT,
    "path": _text_argument("The library instead of the one in dir; it is loaded only if it is in the cache."),
    "platform": _PLATFORM_ARGUMENT,
    "arch": _ARCH_ARGUMENT,
    "module": _text_argument("The module that it brings; vec0 by default.", pattern=_IDENTIFIER_PATTERN),
    "table": _text_argument(
        "Name of the table that is tried.", pattern=_IDENTIFIER_PATTERN, default="dense_vectors_ann"
    ),
    "column": _text_argument("Name of its column.", pattern=_IDENTIFIER_PATTERN, default="embedding"),
    "encoding": _choice_argument("How a vector is given to it.", ["float32", "json"], default="float32"),
    "options": {
        "type": "string",
        "pattern": r"^[A-Za-z0-9_=,. \[\]-]*$",
        "default": "",
        "description": "What follows the column in the table, such as distance_metric=cosine.",
    },
    "annMode": _choice_argument(
        "Whether the extension is meant to be used; nothing is loaded for built-in.",
        ["extension", "built-in"],
        default="extension",
    ),
    "load": _flag_argument("Load it, in a process of its own; without, only look for it.", default=True),
}

_STEP_SCHEMA: Final = {
    "type": "object",
    "required": ["attempted", "ok", "reason"],
    "properties": {
        "attempted": _FLAG_SCHEMA,
        "ok": _FLAG_SCHEMA,
        "reason": add_description({"type": ["string", "null"]}, "Why not; null when it went well."),
    },
}

VERIFY_OUTPUT: Final = _object_schema(
    repoPath=_TEXT_SCHEMA,
    config=_object_schema(
        annMode=_TEXT_SCHEMA,
        enabled=_FLAG_SCHEMA,
        provider=_TEXT_SCHEMA,
        module=_TEXT_SCHEMA,
        table=_TEXT_SCHEMA,
        column=_TEXT_SCHEMA,
        encoding=_TEXT_SCHEMA,
        options=_TEXT_SCHEMA,
        platform=_TEXT_SCHEMA,
        arch=_TEXT_SCHEMA,
        platformKey=_TEXT_SCHEMA,
    ),
    path=add_description(_TEXT_SCHEMA, "Where the library is, or would be."),
    exists=_FLAG_SCHEMA,
    load=add_description(_STEP_SCHEMA, "Loading it into a SQLite of its own."),
    smoke=add_description(_STEP_SCHEMA, "Making a table of vectors, writing one and finding it."),
)
