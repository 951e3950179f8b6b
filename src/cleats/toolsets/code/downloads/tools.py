"""The tools that download: models, dictionaries and extensions; and the one that tries these."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Hints, Tool, arguments
from cleats.settings import Settings
from cleats.toolsets.code.downloads import libraries, shapes
from cleats.toolsets.code.downloads.places import Places
from cleats.toolsets.code.downloads.sources import Policy, Source, read
from cleats.toolsets.code.indexing.access import Indexes
from cleats.toolsets.code.repository import Repository

_FETCHES = Hints(read_only=False, open_world=True)
_ERRORS = (
    ErrorCode.NOT_FOUND,
    ErrorCode.FORBIDDEN,
    ErrorCode.DOWNLOAD_VERIFY_FAILED,
)


@dataclass(frozen=True)
class DownloadTools:
    """The four tools, over the cache of this machine."""

    settings: Settings
    indexes: Indexes

    def _begun(self, given: Mapping[str, Any], context: Context) -> tuple[Repository, Places]:
        repository = self.indexes.repository(given.get("repoPath"))
        context.about(str(repository.root))
        return repository, Places(self.settings.cache_dir, repository.root)

    async def models(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.downloads.models import shipped  # noqa: PLC0415

        repository, places = self._begun(given, context)
        if given.get("cacheDir"):
            places.folder(given["cacheDir"], "models")
            context.warn("nothing_downloaded", "cacheDir is not used: the model is built in.")
        about = await to_thread.run_sync(shipped, given.get("model"))
        return {"repoPath": str(repository.root), **about}

    async def dictionaries(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.downloads import dictionaries  # noqa: PLC0415

        repository, places = self._begun(given, context)
        folder = places.folder(given.get("dir"), "dictionaries")
        wanted = dictionaries.named(given.get("url", ()), repository.root)
        names = given["lang"].split(",") if "lang" in given else None
        shelf = dictionaries.Shelf(
            folder,
            repository.root,
            Policy.of(self.settings),
            update=given["update"],
            force=given["force"],
        )
        await shelf.bring(names, wanted, _Meter(context).tell)
        if any(each["name"] != dictionaries.BUILT_IN for each in shelf.downloaded + shelf.skipped):
            context.warn(
                "dictionaries_unused",
                "These lists are kept, but indexes do not use them yet: run-together words are "
                "taken apart with the built-in list en.",
            )
        return {
            "repoPath": str(repository.root),
            "output": str(folder),
            "downloaded": shelf.downloaded,
            "skipped": shelf.skipped,
        }

    async def extensions(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.downloads.extensions import Place  # noqa: PLC0415

        repository, places = self._begun(given, context)
        provider = given["provider"]
        machine = libraries.machine(given.get("platform"), given.get("arch"))
        folder = _folder(given, places, machine)
        source = read(given["url"], repository.root) if "url" in given else None
        _check_transport(source)
        place = Place(folder, provider, machine, repository.root, Policy.of(self.settings))
        made, came, reason = await place.bring(
            source,
            partial(_Meter(context).tell, provider),
            update=given["update"],
            force=given["force"],
        )
        context.warn(
            "extension_unused",
            "Searches do not use this extension: their vectors are built in.",
        )
        return {
            "repoPath": str(repository.root),
            "provider": provider,
            "platform": machine.platform,
            "arch": machine.arch,
            "output": str(folder),
            "extensionPath": str(made.path(folder)),
            "downloaded": [came] if came else [],
            "skipped": [] if came else [{"name": provider, "reason": reason}],
        }

    async def verify(self, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.downloads import verification  # noqa: PLC0415
        from cleats.toolsets.code.downloads.loading import Trial  # noqa: PLC0415

        repository, places = self._begun(given, context)
        machine = libraries.machine(given.get("platform"), given.get("arch"))
        module = given.get("module", libraries.PROVIDERS[given["provider"]])
        copied = ("annMode", "provider", "table", "column", "encoding", "options")
        config = {name: given[name] for name in copied} | {
            "enabled": given["annMode"] == "extension",
            "module": module,
            "platform": machine.platform,
            "arch": machine.arch,
            "platformKey": machine.key,
        }
        path, why_not = await to_thread.run_sync(self._library, given, places, machine)
        # Path's own raises for a name that is too long.
        exists = await to_thread.run_sync(os.path.isfile, path)
        if not exists:
            why_not = "there is no such library"
        if why_not:
            steps = verification.untried(why_not)
        else:
            context.progress(f"Loading {path.name}", phase="load")
            names = {name: given[name] for name in ("table", "column", "encoding", "options")}
            trial = Trial(path=str(path), module=module, **names)
            steps = await verification.tried(trial, self.settings.grace)
        return {
            "repoPath": str(repository.root),
            "config": config,
            "path": str(path),
            "exists": exists,
            **steps,
        }

    def _library(
        self, given: Mapping[str, Any], places: Places, machine: libraries.Machine
    ) -> tuple[Path, str]:
        """The library that is meant, and why it is not to be loaded, if so."""
        from cleats.toolsets.code.downloads.extensions import installed, intact  # noqa: PLC0415

        why_not = ""
        if "path" in given:
            path = places.resolved(given["path"])
            if not (path.is_relative_to(places.repository) or self._trusted(path)):
                raise ToolError(
                    ErrorCode.FORBIDDEN,
                    f"{given['path']!r} is neither in the cache nor in the repository.",
                    hint="Leave out path, or name a library in the cache.",
                )
        else:
            folder = _folder(given, places, machine)
            path = folder / (libraries.PROVIDERS[given["provider"]] + machine.ending)
            found = installed(folder)
            if found is not None:
                path = found.path(folder) or path
                if path.is_file() and not intact(folder, found):
                    why_not = "it is not the library that was downloaded"
        if not self._trusted(path.resolve()):
            why_not = "it is not in the cache, and other places may hold anybody's code"
        if machine != libraries.this_machine():
            why_not = f"it is for {machine.key}, and this is {libraries.this_machine().key}"
        if given["annMode"] == "built-in":
            why_not = "annMode is built-in, which needs no extension"
        return path, why_not if given["load"] else "load is false"

    def _trusted(self, path: Path) -> bool:
        """Whether the operator lets code run that lies there."""
        roots = (self.settings.cache_dir, *self.settings.download_roots)
        return any(path.is_relative_to(root.resolve()) for root in roots)

    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="download_models",
                version=2,
                title="Get the embedding model",
                description=(
                    "Say which model searches by meaning use, and where it is. It comes with this "
                    "program, so nothing is downloaded, and other models cannot be used."
                ),
                input=arguments(shapes.MODELS_ARGUMENTS),
                output=shapes.MODELS,
                run=self.models,
                timeout=600.0,
                errors=(ErrorCode.FORBIDDEN,),
                examples=({"arguments": {}},),
            ),
            Tool(
                name="download_dictionaries",
                version=2,
                title="Download word lists",
                description=(
                    "Download word lists and keep them, each checked and noted in "
                    "dictionaries.json. Indexes use only the list en, which is built in. A "
                    "download that broke off goes on where it stopped."
                ),
                input=arguments(shapes.DICTIONARIES_ARGUMENTS),
                output=shapes.DICTIONARIES,
                run=self.dictionaries,
                timeout=600.0,
                hints=_FETCHES,
                errors=_ERRORS,
                examples=(
                    {"arguments": {}},
                    {"arguments": {"url": "de=https://example.org/words/de.txt", "update": True}},
                ),
            ),
            Tool(
                name="download_extensions",
                version=2,
                title="Download a SQLite extension",
                description=(
                    "Download an extension of SQLite for vectors and unpack it, after everything "
                    "in it was checked. Searches here need none, since vectors are built in; it "
                    "is kept for other programs."
                ),
                input=arguments(shapes.EXTENSIONS_ARGUMENTS),
                output=shapes.EXTENSIONS,
                run=self.extensions,
                timeout=600.0,
                hints=_FETCHES,
                errors=(*_ERRORS, ErrorCode.ARCHIVE_UNSAFE, ErrorCode.ARCHIVE_TOO_LARGE),
                examples=(
                    {"arguments": {"url": "https://example.org/sqlite-vec-linux-x64.tar.gz"}},
                ),
            ),
            Tool(
                name="verify_extensions",
                version=2,
                title="Try a SQLite extension",
                description=(
                    "Say whether an extension of SQLite is there, and load and try it in a process "
                    "of its own, which a bad one may crash. A missing one is an answer, no error."
                ),
                input=arguments(shapes.VERIFY_ARGUMENTS),
                output=shapes.VERIFIED,
                run=self.verify,
                timeout=120.0,
                hints=Hints(read_only=False),
                errors=(ErrorCode.FORBIDDEN,),
                examples=({"arguments": {}}, {"arguments": {"load": False}}),
            ),
        )


def _folder(given: Mapping[str, Any], places: Places, machine: libraries.Machine) -> Path:
    if "out" in given:
        return places.folder(given["out"], "")
    folder = places.folder(given.get("dir"), "extensions")
    return folder.joinpath(given["provider"], machine.key)


def _check_transport(source: Source | None) -> None:
    """Refuse native code that anybody on the way could have changed."""
    if source is not None and not source.encrypted and not source.sha256:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{source.shown} is a program that comes without encryption.",
            hint="Use https, or add #sha256=... with the hash that it must have.",
        )


@dataclass
class _Meter:
    """Bytes of one download after the other, in a number that only rises."""

    context: Context
    _name: str = ""
    _before: int = 0
    _now: int = 0

    def tell(self, name: str, done: int, total: int) -> None:
        if name != self._name:
            self._name, self._before = name, self._before + self._now
        self._now = done
        of = f" of {total:,}" if total else ""
        self.context.progress(
            f"{name}: {done:,}{of} bytes",
            phase="download",
            done=self._before + done,
            total=self._before + total if total else None,
        )
