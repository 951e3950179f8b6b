"""Tools that download models, dictionaries and extensions, and one that tries an extension, as in `tools.json`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Tool
from cleats.settings import Settings
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.code.downloads import libraries
from cleats.toolsets.code.downloads.sources import DownloadPolicy, DownloadSource, parse_source
from cleats.toolsets.code.downloads.targets import DownloadFolders
from cleats.toolsets.code.index.service import Indexes
from cleats.toolsets.code.repository import Repository


@dataclass(frozen=True)
class DownloadTools:
    """The four download tools, over the cache of this machine."""

    settings: Settings
    indexes: Indexes

    def _begin_call(self, args: Mapping[str, Any], context: Context) -> tuple[Repository, DownloadFolders]:
        repository = self.indexes.find_repository(args.get("repoPath"))
        context.about(str(repository.root))
        return repository, DownloadFolders(self.settings.cache_dir, repository.root)

    def check_dictionaries(self) -> dict[str, bool]:
        """Return whether each word list of the cache is as it was downloaded.

        Raises:
            ToolError: INVALID_REQUEST, their manifest is damaged.
        """
        from cleats.toolsets.code.downloads import dictionaries  # noqa: PLC0415

        return dictionaries.check_dictionaries(self.settings.cache_dir / "dictionaries")

    async def download_models(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.downloads.dictionaries import MODEL_FOLDER, describe_model  # noqa: PLC0415

        repository, folders = self._begin_call(args, context)
        folder = folders.resolve_folder(args["cacheDir"], "models") if "cacheDir" in args else MODEL_FOLDER
        model_facts = await to_thread.run_sync(describe_model, args.get("model"), folder)
        if not model_facts["available"]:
            context.warn("model_elsewhere", f"{folder} has no copy of the model; searches use the built-in one.")
        return {"repoPath": str(repository.root), **model_facts}

    async def download_dictionaries(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.downloads import dictionaries  # noqa: PLC0415

        repository, folders = self._begin_call(args, context)
        folder = folders.resolve_folder(args.get("dir"), "dictionaries")
        named_sources = dictionaries.parse_named_sources(args.get("url", ()), repository.root)
        names = args["lang"].split(",") if "lang" in args else None
        dictionary_folder = dictionaries.DictionaryFolder(
            folder,
            repository.root,
            DownloadPolicy.from_settings(self.settings),
            update=args["update"],
            force=args["force"],
        )
        await dictionary_folder.ensure_dictionaries(names, named_sources, _DownloadMeter(context).report)
        if any(
            item["name"] != dictionaries.BUILTIN_DICTIONARY
            for item in dictionary_folder.downloaded + dictionary_folder.skipped
        ):
            context.warn(
                "dictionaries_unused",
                "These lists are stored, but indexes do not use them yet: compound words are "
                "split with the built-in list en.",
            )
        return {
            "repoPath": str(repository.root),
            "output": str(folder),
            "downloaded": dictionary_folder.downloaded,
            "skipped": dictionary_folder.skipped,
        }

    async def download_extension(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        from cleats.toolsets.code.downloads.extensions import ExtensionFolder  # noqa: PLC0415

        repository, folders = self._begin_call(args, context)
        provider = args["provider"]
        platform = libraries.resolve_platform(args.get("platform"), args.get("arch"))
        folder = _resolve_extension_folder(args, folders, platform)
        source = parse_source(args["url"], repository.root) if "url" in args else None
        _check_transport(source)
        extension_folder = ExtensionFolder(
            folder, provider, platform, repository.root, DownloadPolicy.from_settings(self.settings)
        )
        manifest, download, reason = await extension_folder.ensure_extension(
            source, partial(_DownloadMeter(context).report, provider), update=args["update"], force=args["force"]
        )
        context.warn("extension_unused", "Search does not use this extension: vectors are built in.")
        return {
            "repoPath": str(repository.root),
            "provider": provider,
            "platform": platform.platform,
            "arch": platform.arch,
            "output": str(folder),
            "extensionPath": str(manifest.resolve_library(folder)),
            "downloaded": [download] if download else [],
            "skipped": [] if download else [{"name": provider, "reason": reason}],
        }

    async def verify_extension(self, args: Mapping[str, Any], context: Context) -> dict[str, Any]:
        repository, folders = self._begin_call(args, context)
        platform = libraries.resolve_platform(args.get("platform"), args.get("arch"))
        module = args.get("module", libraries.LIBRARY_NAMES_BY_PROVIDER[args["provider"]])
        copied_names = ("annMode", "provider", "table", "column", "encoding", "options")
        config = {name: args[name] for name in copied_names} | {
            "enabled": args["annMode"] == "extension",
            "module": module,
            "platform": platform.platform,
            "arch": platform.arch,
            "platformKey": platform.key,
        }
        path, skip_reason = await to_thread.run_sync(self._locate_library, args, folders, platform)
        # Path.is_file raises an error for a name that is too long.
        exists = await to_thread.run_sync(os.path.isfile, path)
        if not exists:
            skip_reason = "the library does not exist"
        if skip_reason:
            steps = libraries.report_skipped(skip_reason)
        else:
            context.progress(f"Loading {path.name}", phase="load")
            names = {name: args[name] for name in ("table", "column", "encoding", "options")}
            trial = libraries.ExtensionTrial(path=str(path), module=module, **names)
            steps = await libraries.try_extension(trial, self.settings.grace)
        return {"repoPath": str(repository.root), "config": config, "path": str(path), "exists": exists, **steps}

    def _locate_library(
        self, args: Mapping[str, Any], folders: DownloadFolders, platform: libraries.LibraryPlatform
    ) -> tuple[Path, str]:
        """Return the path of the library, and the reason not to load it, if there is one."""
        from cleats.toolsets.code.downloads.extensions import is_intact, read_manifest  # noqa: PLC0415

        skip_reason = ""
        if "path" in args:
            path = folders.resolve_path(args["path"])
            if not (path.is_relative_to(folders.repository) or self._is_trusted(path)):
                message = f"{args['path']!r} is neither in the cache nor in the repository."
                raise ToolError(ErrorCode.FORBIDDEN, message, hint="Omit path, or name a library in the cache.")
        else:
            folder = _resolve_extension_folder(args, folders, platform)
            path = folder / (libraries.LIBRARY_NAMES_BY_PROVIDER[args["provider"]] + platform.library_suffix)
            manifest = read_manifest(folder)
            if manifest is not None:
                path = manifest.resolve_library(folder) or path
                if path.is_file() and not is_intact(folder, manifest):
                    skip_reason = "it is not the library that was downloaded"
        if not self._is_trusted(path.resolve()):
            skip_reason = "it is not in the cache, and code from other places is not trusted"
        if platform != libraries.detect_platform():
            skip_reason = f"it is for {platform.key}, and this is {libraries.detect_platform().key}"
        if args["annMode"] == "built-in":
            skip_reason = "annMode is built-in, which needs no extension"
        return path, skip_reason if args["load"] else "load is false"

    def _is_trusted(self, path: Path) -> bool:
        """Return whether the operator allows code at this path to run."""
        roots = (self.settings.cache_dir, *self.settings.code.download_roots)
        return any(path.is_relative_to(root.resolve()) for root in roots)

    def tools(self) -> tuple[Tool, ...]:
        handlers = {
            "download_models": self.download_models,
            "download_dictionaries": self.download_dictionaries,
            "download_extensions": self.download_extension,
            "verify_extensions": self.verify_extension,
        }
        return ToolTable(Path(__file__).parent).make_tools(handlers)


def _resolve_extension_folder(
    args: Mapping[str, Any], folders: DownloadFolders, platform: libraries.LibraryPlatform
) -> Path:
    if "out" in args:
        return folders.resolve_folder(args["out"], "")
    folder = folders.resolve_folder(args.get("dir"), "extensions")
    return folder.joinpath(args["provider"], platform.key)


def _check_transport(source: DownloadSource | None) -> None:
    """Reject native code that could have been changed in transit."""
    if source is not None and not source.is_encrypted and not source.sha256:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{source.public_url} is a program that would be downloaded without encryption.",
            hint="Use https, or add #sha256=... with the expected hash.",
        )


@dataclass
class _DownloadMeter:
    """Progress over consecutive downloads, as one number that only rises."""

    context: Context
    _name: str = ""
    _finished_bytes: int = 0
    _current_bytes: int = 0

    def report(self, name: str, done: int, total: int) -> None:
        if name != self._name:
            self._name, self._finished_bytes = name, self._finished_bytes + self._current_bytes
        self._current_bytes = done
        total_text = f" of {total:,}" if total else ""
        self.context.progress(
            f"{name}: {done:,}{total_text} bytes",
            phase="download",
            done=self._finished_bytes + done,
            total=self._finished_bytes + total if total else None,
        )
