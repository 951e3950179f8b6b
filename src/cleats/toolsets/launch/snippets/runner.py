"""Runs the complete programs of a catalogue in the environment of their language."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from cleats.system.processes.fenced_command import (
    PROGRAM_PATH,
    WORK_FOLDER,
    FencedCommand,
    FencedResult,
    FenceLimits,
    FenceUnavailable,
    get_interpreter,
    run_fenced,
)
from cleats.toolsets.launch.snippets import programs
from cleats.toolsets.launch.snippets.environments import EnvironmentBuilder, PackageUnavailable, PythonEnvironment
from cleats.toolsets.launch.snippets.programs import NOT_RUN, ProgramRun
from cleats.toolsets.launch.source.checkout.repository_layout import is_compatible_language
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

MAX_PROGRAMS: Final = 20
"""Programs that are run at most; a page shows a few."""

MAX_TOTAL_SECONDS: Final = 300.0
"""Time after which no further program is started."""

MAX_LOGGED_CHARACTERS: Final = 8000
"""Characters of each output that the log of a program keeps, from its end."""

_STARTER_TAGS: Final = ("quickstart", "readme", "example", "docs")
_IMPORT_STATEMENT_PATTERN: Final = re.compile(r"^\s*(?:import|export)\b", re.MULTILINE)

_NODE_LIMITS: Final = FenceLimits(address_bytes=None)
"""Node reserves far more addresses than it uses."""

_MISSING_MODULES_PROGRAM: Final = (
    "import importlib.util as u, json, sys; print(json.dumps([name for name in sys.argv[1:] if not u.find_spec(name)]))"
)


class ProgramEnvironment(Protocol):
    """Where the programs of one language run."""

    @property
    def description(self) -> str: ...

    async def run_program(self, code: str) -> FencedResult: ...

    async def find_missing_modules(self, names: Sequence[str]) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class PythonPrograms:
    """Python with the package, installed or as source."""

    environment: PythonEnvironment
    description: str

    async def run_program(self, code: str) -> FencedResult:
        path = f"{WORK_FOLDER}/program.py"
        return await self.environment.run(path, files={path: code})

    async def find_missing_modules(self, names: Sequence[str]) -> frozenset[str]:
        result = await self.environment.run("-c", _MISSING_MODULES_PROGRAM, *names)
        return frozenset(json.loads(result.stdout)) if result.exit_code == 0 else frozenset()


@dataclass(frozen=True, slots=True)
class NodePrograms:
    """Node with a package that has no dependencies and needs no build."""

    node: Path
    name: str
    source: Path
    root: Path
    description: str

    async def run_program(self, code: str) -> FencedResult:
        path = f"{WORK_FOLDER}/program.{'mjs' if _IMPORT_STATEMENT_PATTERN.search(code) else 'cjs'}"
        command = FencedCommand(
            argv=["/node/bin/node", path],
            env={"NO_COLOR": "1", "PATH": f"/node/bin:{PROGRAM_PATH}"},
            files={path: code},
            folders={"/node/bin/node": self.node, f"/node_modules/{self.name}": self.source},
            limits=_NODE_LIMITS,
        )
        return await run_fenced(command, self.root)

    async def find_missing_modules(self, names: Sequence[str]) -> frozenset[str]:  # noqa: ARG002 - Node says it itself
        return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRunner:
    """Runs the programs of one checkout."""

    tree: CheckoutTree
    commit: str
    language: str
    product: Mapping[str, Any]
    """The distribution of the package: its identifier and its import names."""
    builder: EnvironmentBuilder
    node: str
    """The path of Node, or an empty text."""
    redact: Callable[[str], str]
    """Returns a text without anything that looks like a secret."""
    report_progress: Callable[[str, float | None, float | None], None]

    async def run(self, catalogue: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the catalogue with the results of its programs, and the log of each by artifact name."""
        runs = {
            entry["snippet_id"]: self._exclude(entry) for entry in catalogue["snippets"] if self._is_candidate(entry)
        }
        entries = {entry["snippet_id"]: entry for entry in catalogue["snippets"]}
        chosen = sorted((key for key, run in runs.items() if run is None), key=lambda key: _rank_entry(entries[key]))
        logs: dict[str, str] = {}
        environment_entry: dict[str, Any] = {}
        try:
            if chosen:
                environment = await self._open_environment()
                runs |= await self._run_chosen(environment, [entries[key] for key in chosen], logs)
                environment_entry = {"environment": environment.description}
        except (FenceUnavailable, PackageUnavailable) as error:
            runs |= dict.fromkeys(chosen, self._explain_obstacle(error))
        snippets = [
            programs.add_run(entry, run, log_path if (log_path := _name_log(entry)) in logs else "")
            if (run := runs.get(entry["snippet_id"]))
            else entry
            for entry in catalogue["snippets"]
        ]
        return {**catalogue, **environment_entry, "snippets": snippets}, logs

    def _is_candidate(self, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry could be shown as a program of the product."""
        is_usable = entry["validation"]["syntax_ok"] and "test" not in entry["tags"] and "usage" in entry["tags"]
        return bool(is_usable and is_compatible_language(entry["language"], self.language))

    def _exclude(self, entry: Mapping[str, Any]) -> ProgramRun | None:
        """Return the reason not to run an entry, if there is one."""
        reason = f"A program in {entry['language']} needs a build step, which Cleats does not run."
        if entry["language"] == self.language == "python":
            reason = programs.find_incompleteness(entry["code"])
        elif entry["language"] == self.language == "javascript":
            names = self.product.get("import_names") or ()
            reason = "" if any(name in entry["code"] for name in names) else "It does not import the package."
        return ProgramRun(NOT_RUN, reason) if reason else None

    def _explain_obstacle(self, error: Exception) -> ProgramRun:
        text = self._scrub(str(error).rstrip("."))
        return ProgramRun(NOT_RUN, f"{text[:1].upper()}{text[1:]}.")

    async def _run_chosen(
        self, environment: ProgramEnvironment, entries: Sequence[Mapping[str, Any]], logs: dict[str, str]
    ) -> dict[str, ProgramRun]:
        runs: dict[str, ProgramRun] = {}
        modules = {name for entry in entries for name in self._list_other_modules(entry)}
        missing = await environment.find_missing_modules(sorted(modules)) if modules else frozenset()
        started_at = time.monotonic()
        for number, entry in enumerate(entries):
            self.report_progress(f"Run {_format_place(entry)}", number, len(entries))
            if number >= MAX_PROGRAMS or time.monotonic() - started_at > MAX_TOTAL_SECONDS:
                run = ProgramRun(NOT_RUN, "The programs before it used up the limit of a run.")
            elif lacking := sorted(missing & set(self._list_other_modules(entry))):
                run = ProgramRun(NOT_RUN, f"It needs the module {lacking[0]}, which is not installed.")
            else:
                run = await self._run_program(environment, entry, logs)
            runs[entry["snippet_id"]] = run
        return runs

    async def _run_program(
        self, environment: ProgramEnvironment, entry: Mapping[str, Any], logs: dict[str, str]
    ) -> ProgramRun:
        began_at = time.monotonic()
        try:
            result = await environment.run_program(entry["code"])
        except FenceUnavailable as error:  # killed from outside, as by the kernel when memory is short
            return self._explain_obstacle(error)
        run = programs.judge_result(result, entry["code"], time.monotonic() - began_at)
        run = replace(run, reason=self._scrub(run.reason))
        logs[_name_log(entry)] = self._format_log(entry, run, environment.description, result)
        return run

    def _list_other_modules(self, entry: Mapping[str, Any]) -> list[str]:
        return [name for name in entry["requirements"]["dependencies"] if name != self.product.get("identifier")]

    async def _open_environment(self) -> ProgramEnvironment:
        if self.language == "python":
            return await self._open_python()
        return await self._open_node()

    async def _open_python(self) -> PythonPrograms:
        self.report_progress("Install the package", None, None)
        try:
            environment = await self.builder.install(self.tree.root, self.commit)
        except PackageUnavailable as error:
            source = self._find_source_folder()
            if source is None:
                raise
            environment = replace(await self.builder.make_empty(), source=source)
            name = self.product["import_names"][0]
            result = await environment.run("-c", f"import {name}")
            if result.exit_code != 0:
                raise
            reason = self._scrub(str(error))
            return PythonPrograms(environment, f"{_name_python()} with the source of the package, because {reason}")
        return PythonPrograms(environment, f"{_name_python()} with the package installed")

    def _find_source_folder(self) -> Path | None:
        """Return the folder of the checkout from which the package can be imported."""
        for name in list(self.product.get("import_names") or ())[:1]:
            inner = name.replace(".", "/")
            paths = [path for path in self.tree.paths if f"/{path}".endswith((f"/{inner}/__init__.py", f"/{inner}.py"))]
            if paths:
                path = min(paths, key=lambda item: (item.count("/"), item))
                return self.tree.root / path.removesuffix(".py").removesuffix("/__init__").removesuffix(inner)
        return None

    async def _open_node(self) -> NodePrograms:
        package = self.tree.read_text("package.json")
        document = json.loads(package) if package else {}
        name = str(document.get("name") or "")
        if not self.node:
            raise PackageUnavailable("Node is not installed")
        if not re.fullmatch(r"(@[\w.-]+/)?[\w.-]+", name) or name in {".", ".."}:
            raise PackageUnavailable("the repository has no package at its top")
        if document.get("dependencies"):
            raise PackageUnavailable("the package has dependencies, which Cleats does not install")
        environment = NodePrograms(
            Path(self.node), name, self.tree.root, self.builder.root, "Node with the source of the package"
        )
        result = await environment.run_program(f"import {json.dumps(name)};\n")
        if result.exit_code != 0:
            raise PackageUnavailable("the package does not load without a build step, which Cleats does not run")
        return environment

    def _format_log(self, entry: Mapping[str, Any], run: ProgramRun, description: str, result: FencedResult) -> str:
        sections = (("stdout", result.stdout), ("stderr", result.stderr))
        texts = (f"--- {name}\n{self._cut_output(data)}" for name, data in sections if data.strip())
        head = f"{_format_place(entry)} at {self.commit}\n{description}\n{run.outcome}"
        return "\n".join([f"{head}: {run.reason}" if run.reason else head, *texts]).rstrip("\n") + "\n"

    def _cut_output(self, data: bytes) -> str:
        text = self._scrub(data.decode(errors="replace"))
        return text if len(text) <= MAX_LOGGED_CHARACTERS else f"(…)\n{text[-MAX_LOGGED_CHARACTERS:]}"

    def _scrub(self, text: str) -> str:
        """Return a text without secrets and folders of this machine."""
        for folder, name in ((str(self.builder.cache), "(cache)"), (str(get_interpreter()[1]), "(python)")):
            text = text.replace(folder, name)
        return self.redact(text)


def _rank_entry(entry: Mapping[str, Any]) -> int:
    return next((rank for rank, tag in enumerate(_STARTER_TAGS) if tag in entry["tags"]), len(_STARTER_TAGS))


def _name_log(entry: Mapping[str, Any]) -> str:
    return f"logs/snippets/{entry['snippet_id']}.log"


def _format_place(entry: Mapping[str, Any]) -> str:
    source = entry["source"]
    return f"{source['path']}:{source['start_line']}-{source['end_line']}"


def _name_python() -> str:
    import platform  # noqa: PLC0415

    return f"Python {platform.python_version()}"
