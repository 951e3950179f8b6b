"""The table of tools of the toolset `explore`."""

import threading
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cleats.contract.errors import ErrorCode
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Context, Tool, Toolset, arguments
from cleats.system.processes.blocking import run_in_thread
from cleats.toolsets.code.explore.answer_text import TOKENS_PROPERTY
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.explore.changed_files import ChangedFiles
    from cleats.toolsets.code.explore.declarations import DeclarationReader
    from cleats.toolsets.code.shared_engine import CodeEngine

REPO_PROPERTY: Final = {"type": "string", "description": "Repository folder. [default: the server's]"}
PATH_PROPERTY: Final = {"type": "string", "description": "Only this folder, file or glob."}
OFFSET_PROPERTY: Final = {"type": "integer", "minimum": 0, "default": 0, "description": "Skip this many."}

Handler = Callable[[Mapping[str, Any], Context], Awaitable[str]]
Work = Callable[[Repository, Mapping[str, Any], Callable[[], bool]], str]


class ExploreTools:
    """The handlers of the tools, and the state that they share."""

    def __init__(self, engine: "CodeEngine") -> None:
        self.indexes, self._search_tool, self._builds = engine.indexes, engine.search_tool, engine.builds
        self._state: tuple[DeclarationReader, ChangedFiles] | None = None
        self._state_lock = threading.Lock()

    def _load_state(self) -> "tuple[DeclarationReader, ChangedFiles]":
        from cleats.toolsets.code.explore.changed_files import ChangedFiles  # noqa: PLC0415 - by the first call
        from cleats.toolsets.code.explore.declarations import DeclarationReader  # noqa: PLC0415

        with self._state_lock:
            self._state = self._state or (DeclarationReader(), ChangedFiles())
            return self._state

    async def _run(self, work: Work, args: Mapping[str, Any], context: Context) -> str:
        repository = self.indexes.find_suitable_repository(args.get("repo"), "repo")
        context.about(str(repository.root))
        cancelled = threading.Event()
        try:
            return await run_in_thread(lambda given: work(repository, given, cancelled.is_set), args)
        finally:
            cancelled.set()

    def handle(self, module_name: str, function_name: str) -> Handler:
        """Return the handler of a tool that reads declarations; its module is loaded by the first call."""

        async def run_tool(args: Mapping[str, Any], context: Context) -> str:
            def work(repository: Repository, given: Mapping[str, Any], is_cancelled: Callable[[], bool]) -> str:
                module = import_module(f"cleats.toolsets.code.explore.{module_name}")
                answer: str = getattr(module, function_name)(repository, given, self._load_state()[0], is_cancelled)
                return answer

            return await self._run(work, args, context)

        return run_tool

    async def find_code(self, args: Mapping[str, Any], context: Context) -> str:
        def find(repository: Repository, given: Mapping[str, Any], is_cancelled: Callable[[], bool]) -> str:
            from cleats.toolsets.code.explore.find_code import CodeFinder  # noqa: PLC0415 - by the first call

            finder = CodeFinder(self._search_tool, *self._load_state())
            return finder.find(repository, given, build_state, is_cancelled)

        repository = self.indexes.find_suitable_repository(args.get("repo"), "repo")
        build_state = self._prepare_index(repository)
        return await self._run(find, args, context)

    def _prepare_index(self, repository: Repository) -> str:
        """Start a build where there is no index; return how far it is."""
        self._builds.start_first(repository)
        return self._builds.describe(repository)


def build_toolset(engine: "CodeEngine") -> Toolset:
    """Build the toolset over the repositories of this machine."""
    explore = ExploreTools(engine)
    read_errors = (ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN)
    return Toolset(
        name="explore",
        purpose="Find and read code: by words, by name, by text; outlines and references, with line numbers.",
        advice=(
            "To locate code for a task, start with one find_code call that has the task's own words, unchanged. It"
            " shows the likeliest declarations with their lines: if one fits the task, it is found, and need not be"
            " read again. A first file marked as clear lead is usually the right one. If the lines do not decide, read"
            " the likeliest two or three in a single read_symbol call, names with commas between them; do not search"
            " again with other words. Use find_references for the uses of a name and grep_code when you know the exact"
            " text. No index has to be built first."
        ),
        running=engine.lifespan,
        on_roots=explore.indexes.roots_callback,
        tools=(
            Tool(
                name="find_code",
                title="Find code",
                description=(
                    "Find the code that a question, bug report or feature is about. Call it first, once, with the"
                    " task's own words: files are ranked by all words together, by names, and by earlier commits about"
                    " the same thing. Returns one place for each file, likeliest first, with the decisive lines."
                    " 'clear lead' means that the first file fits far better than the others: stop searching."
                ),
                input=arguments(
                    {
                        "query": {
                            "type": "string",
                            "minLength": 1,
                            "description": "Problem statement, question, name or error message.",
                        },
                        "path": PATH_PROPERTY,
                        "language": {"type": "string", "description": "Only this language, such as python."},
                        "kind": {"type": "string", "description": "Only function, method, class, constant, ..."},
                        "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5, "description": "Hits."},
                        "offset": OFFSET_PROPERTY,
                        "tokens": TOKENS_PROPERTY,
                        "repo": REPO_PROPERTY,
                    },
                    required=("query",),
                ),
                payload=CONTENT,
                run=explore.find_code,
                timeout=60.0,
                errors=(ErrorCode.NO_INDEX, ErrorCode.NOT_FOUND, ErrorCode.FORBIDDEN, ErrorCode.UNAVAILABLE),
                examples=({"arguments": {"query": "where is the session cookie signed"}},),
                search_hint="find code by meaning, symbol lookup, where is it implemented, semantic code search",
                always_load=True,
            ),
            Tool(
                name="grep_code",
                title="Grep code",
                description=(
                    "Find every line with an exact text or regular expression, in the files as they are now, each with"
                    " its enclosing function. Faster and shorter than a shell grep; respects .gitignore."
                ),
                input=arguments(
                    {
                        "pattern": {"type": "string", "minLength": 1, "description": "Text, or regex with regex=true."},
                        "regex": {"type": "boolean", "default": False, "description": "Read pattern as a regex."},
                        "ignore_case": {"type": "boolean", "description": "[default: true if pattern is lower case]"},
                        "path": PATH_PROPERTY,
                        "files_only": {"type": "boolean", "default": False, "description": "Only files and counts."},
                        "context": {
                            "type": "integer",
                            "minimum": 0,
                            "maximum": 20,
                            "default": 0,
                            "description": "Lines around each match.",
                        },
                        "offset": OFFSET_PROPERTY,
                        "tokens": TOKENS_PROPERTY,
                        "repo": REPO_PROPERTY,
                    },
                    required=("pattern",),
                ),
                payload=CONTENT,
                run=explore.handle("grep_code", "grep"),
                timeout=60.0,
                errors=read_errors,
                examples=({"arguments": {"pattern": "raise ValueError", "path": "src"}},),
                search_hint="grep, ripgrep, text search, regex search in files",
                always_load=True,
            ),
            Tool(
                name="read_symbol",
                title="Read a symbol",
                description=(
                    "Read the source of a function, class, method or constant by name, such as Session.close or close."
                    " A large class is shown as its members. Cheaper than reading the file."
                ),
                input=arguments(
                    {
                        "name": {
                            "type": "string",
                            "minLength": 1,
                            "description": "Name, qualified or not, or several with commas between them.",
                        },
                        "path": PATH_PROPERTY,
                        "tokens": TOKENS_PROPERTY,
                        "repo": REPO_PROPERTY,
                    },
                    required=("name",),
                ),
                payload=CONTENT,
                run=explore.handle("symbols", "read_symbol"),
                timeout=60.0,
                errors=read_errors,
                examples=({"arguments": {"name": "Flask.full_dispatch_request"}},),
                search_hint="read function source, go to definition, find function definition, symbol lookup",
            ),
            Tool(
                name="find_references",
                title="Find references",
                description=(
                    "Find where a symbol is called, used, imported, subclassed or overridden: file, line and text of"
                    " each use with its enclosing function. direction=callees lists what it calls instead."
                ),
                input=arguments(
                    {
                        "name": {"type": "string", "minLength": 1, "description": "Name, qualified or not."},
                        "direction": {"type": "string", "enum": ["callers", "callees"], "default": "callers"},
                        "kind": {
                            "type": "string",
                            "enum": ["call", "use", "import", "subclass", "override", "mention"],
                            "description": "Only this kind of use.",
                        },
                        "path": PATH_PROPERTY,
                        "offset": OFFSET_PROPERTY,
                        "tokens": TOKENS_PROPERTY,
                        "repo": REPO_PROPERTY,
                    },
                    required=("name",),
                ),
                payload=CONTENT,
                run=explore.handle("references", "find_references"),
                timeout=60.0,
                errors=read_errors,
                examples=({"arguments": {"name": "url_for", "kind": "call"}},),
                search_hint="find references, callers, callees, usages, where is function called, subclasses",
            ),
            Tool(
                name="outline",
                title="Outline",
                description=(
                    "List the declarations of a file with line numbers, or map a folder or the whole repository, most"
                    " used files first. Use it to get to know unknown code."
                ),
                input=arguments(
                    {
                        "path": {"type": "string", "description": "File or folder. [default: the repository]"},
                        "tokens": {**TOKENS_PROPERTY, "default": 1000},
                        "repo": REPO_PROPERTY,
                    }
                ),
                payload=CONTENT,
                run=explore.handle("outline", "outline"),
                timeout=60.0,
                errors=read_errors,
                examples=({"arguments": {"path": "src/flask/app.py"}},),
                search_hint="outline, list symbols of a file, repository map, project structure",
            ),
            Tool(
                name="read_lines",
                title="Read lines",
                description="Read lines of a file with their numbers.",
                input=arguments(
                    {
                        "path": {"type": "string", "minLength": 1, "description": "File in the repository."},
                        "start": {"type": "integer", "minimum": 1, "default": 1, "description": "First line."},
                        "end": {"type": "integer", "minimum": 1, "description": "Last line. [default: 60 lines]"},
                        "tokens": TOKENS_PROPERTY,
                        "repo": REPO_PROPERTY,
                    },
                    required=("path",),
                ),
                payload=CONTENT,
                run=explore.handle("symbols", "read_lines"),
                timeout=30.0,
                errors=read_errors,
                examples=({"arguments": {"path": "src/app.py", "start": 40, "end": 80}},),
            ),
        ),
    )
