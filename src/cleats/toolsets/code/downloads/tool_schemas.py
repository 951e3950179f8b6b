"""Schemas of the arguments and outputs of the download tools."""

from typing import Final

from cleats.toolsets.code import schema_atoms as schemas
from cleats.toolsets.code.downloads.libraries import ARCH_ALIASES, LIBRARY_NAMES_BY_PROVIDER, PLATFORM_ALIASES
from cleats.toolsets.code.index.tool_schemas import REPO_PATH_SCHEMA

_ADDRESS_DESCRIPTION: Final = (
    "an http(s) or file URL, or a path from the root of the repository, with #sha256=... at its "
    "end to say what must come"
)
_FOLDER_DESCRIPTION: Final = "in the cache or in the repository, absolute or from its root"
_UPDATE_DESCRIPTION: Final = "Ask the source whether it has another version, and take that."
_FORCE_DESCRIPTION: Final = "Download also what is in place and unchanged."

MODELS_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "model": schemas.text_argument("The model that is wanted; without it, the one that searches use."),
    "cacheDir": schemas.text_argument(
        f"Folder with a copy of the model to report on instead of the built-in one, {_FOLDER_DESCRIPTION}."
    ),
}

MODELS_OUTPUT: Final = schemas.object_schema(
    repoPath=schemas.TEXT_SCHEMA,
    model=schemas.text_schema("What vectors are made with."),
    available=schemas.flag_schema("Whether the folder has all of it, unchanged."),
    shipped=schemas.flag_schema("Whether it comes with this program."),
    downloaded=schemas.flag_schema("Whether anything was downloaded."),
    output=schemas.text_schema("The folder that it is in."),
    dims=schemas.count_schema("Numbers of one vector."),
    words=schemas.count_schema("Words that it knows."),
    bytes=schemas.COUNT_SCHEMA,
    fingerprint=schemas.text_schema("Other when vectors of the two cannot be compared."),
)

_NAMED_SOURCE_SCHEMA: Final = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9._-]{0,63}=."}

DICTIONARIES_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "lang": schemas.text_argument(
        "Names of the lists that are wanted, with commas; by default all of url, or all that are known.",
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}(,[a-z0-9][a-z0-9._-]{0,63})*$",
    ),
    "url": {
        "description": f"Where lists come from, each as name=source: {_ADDRESS_DESCRIPTION}.",
        "anyOf": [
            _NAMED_SOURCE_SCHEMA,
            {"type": "array", "items": _NAMED_SOURCE_SCHEMA, "minItems": 1, "maxItems": 50},
        ],
    },
    "dir": schemas.text_argument(f"Folder for the lists, {_FOLDER_DESCRIPTION}."),
    "update": schemas.flag_argument(_UPDATE_DESCRIPTION),
    "force": schemas.flag_argument(_FORCE_DESCRIPTION),
}

_SKIPPED_PROPERTIES: Final = {
    "name": schemas.TEXT_SCHEMA,
    "reason": {"type": "string", "enum": ["built-in", "present", "not-modified", "unchanged"]},
}

DICTIONARIES_OUTPUT: Final = schemas.object_schema(
    repoPath=schemas.TEXT_SCHEMA,
    output=schemas.text_schema("The folder with the lists and dictionaries.json, which describes them."),
    downloaded=schemas.array_schema(
        schemas.object_schema(
            **schemas.repeat_schema(schemas.TEXT_SCHEMA, "name url path sha256"),
            bytes=schemas.COUNT_SCHEMA,
            words=schemas.COUNT_SCHEMA,
            resumed=schemas.count_schema("Bytes that an earlier call had fetched."),
        ),
        "Lists that are new or other than before.",
    ),
    skipped=schemas.array_schema(
        schemas.object_schema(**_SKIPPED_PROPERTIES, words=schemas.COUNT_SCHEMA),
        "Lists for which nothing had to be done.",
    ),
)

_PROVIDER_ARGUMENT: Final = schemas.choice_argument(
    "The extension.", sorted(LIBRARY_NAMES_BY_PROVIDER), default="sqlite-vec"
)
_PLATFORM_ARGUMENT: Final = schemas.choice_argument(
    "The system it is for; this one by default.", sorted(PLATFORM_ALIASES)
)
_ARCH_ARGUMENT: Final = schemas.choice_argument("The processor it is for; this one by default.", sorted(ARCH_ALIASES))
_DIR_ARGUMENT: Final = schemas.text_argument(
    f"Folder for extensions, {_FOLDER_DESCRIPTION}; each has a folder provider/platform-arch in it."
)

EXTENSIONS_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "provider": _PROVIDER_ARGUMENT,
    "dir": _DIR_ARGUMENT,
    "out": schemas.text_argument(f"Folder for this extension, new or empty, {_FOLDER_DESCRIPTION}; goes before dir."),
    "platform": _PLATFORM_ARGUMENT,
    "arch": _ARCH_ARGUMENT,
    "url": schemas.text_argument(
        f"Where it comes from: {_ADDRESS_DESCRIPTION}. A zip, a tar (gz, bz2, xz) or the library itself; over "
        "http only with a sha256. Without it, where it came from before."
    ),
    "update": schemas.flag_argument(_UPDATE_DESCRIPTION),
    "force": schemas.flag_argument(_FORCE_DESCRIPTION),
}

EXTENSIONS_OUTPUT: Final = schemas.object_schema(
    **schemas.repeat_schema(schemas.TEXT_SCHEMA, "repoPath provider platform arch"),
    output=schemas.text_schema("The folder of the extension."),
    extensionPath=schemas.text_schema("The library."),
    downloaded=schemas.array_schema(
        schemas.object_schema(
            **schemas.repeat_schema(schemas.TEXT_SCHEMA, "name url sha256"),
            bytes=schemas.COUNT_SCHEMA,
            files=schemas.count_schema("Files that were put in place."),
            resumed=schemas.count_schema("Bytes that an earlier call had fetched."),
        ),
        "What came.",
    ),
    skipped=schemas.array_schema(schemas.object_schema(**_SKIPPED_PROPERTIES), "What did not have to come."),
)

_IDENTIFIER_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"

VERIFY_ARGUMENTS: Final = {
    "repoPath": REPO_PATH_SCHEMA,
    "provider": _PROVIDER_ARGUMENT,
    "dir": _DIR_ARGUMENT,
    "path": schemas.text_argument("The library instead of the one in dir; it is loaded only if it is in the cache."),
    "platform": _PLATFORM_ARGUMENT,
    "arch": _ARCH_ARGUMENT,
    "module": schemas.text_argument("The module that it brings; vec0 by default.", pattern=_IDENTIFIER_PATTERN),
    "table": schemas.text_argument(
        "Name of the table that is tried.", pattern=_IDENTIFIER_PATTERN, default="dense_vectors_ann"
    ),
    "column": schemas.text_argument("Name of its column.", pattern=_IDENTIFIER_PATTERN, default="embedding"),
    "encoding": schemas.choice_argument("How a vector is given to it.", ["float32", "json"], default="float32"),
    "options": {
        "type": "string",
        "pattern": r"^[A-Za-z0-9_=,. \[\]-]*$",
        "default": "",
        "description": "What follows the column in the table, such as distance_metric=cosine.",
    },
    "annMode": schemas.choice_argument(
        "Whether the extension is meant to be used; nothing is loaded for built-in.",
        ["built-in", "extension"],
        default="extension",
    ),
    "load": schemas.flag_argument("Load it, in a process of its own; without, only look for it.", default=True),
}

_STEP_SCHEMA: Final = schemas.object_schema(
    attempted=schemas.FLAG_SCHEMA,
    ok=schemas.FLAG_SCHEMA,
    reason=schemas.nullable_text_schema("Why not; null when it went well."),
)

VERIFY_OUTPUT: Final = schemas.object_schema(
    repoPath=schemas.TEXT_SCHEMA,
    config=schemas.object_schema(
        annMode=schemas.TEXT_SCHEMA,
        enabled=schemas.FLAG_SCHEMA,
        **schemas.repeat_schema(
            schemas.TEXT_SCHEMA, "provider module table column encoding options platform arch platformKey"
        ),
    ),
    path=schemas.text_schema("Where the library is, or would be."),
    exists=schemas.FLAG_SCHEMA,
    load=schemas.add_description(_STEP_SCHEMA, "Loading it into a SQLite of its own."),
    smoke=schemas.add_description(_STEP_SCHEMA, "Making a table of vectors, writing one and finding it."),
)
