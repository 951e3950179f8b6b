"""Which repositories and files a caller from the network may name.

The fence is around the tools and not around the routes, so that it also holds for calls that come
over `/mcp`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.pathnames import usable
from cleats.contract.tools import Context, Handler, Tool, Toolset

REPOSITORY: Final = "repoPath"
"""The argument that names a repository, in every tool that has one."""

WORKSPACE: Final = "workspacePath"
"""The argument that names a file with the names of repositories."""

PATHS: Final = ("inputPath", "artifactsDir", WORKSPACE)
"""Arguments that name what is read, from the root of the repository or absolutely.

Tools that keep to the repository by themselves are not in need of a fence.
"""

CONFIG: Final = "run_config"
"""The argument whose addresses of repositories may be paths on this machine."""


@dataclass(frozen=True)
class Fence:
    """The default repository and the folders in which others may be."""

    repo: Path
    roots: Sequence[Path] = ()
    own: Path | None = None
    """The repository of calls that name none: that around `repo`, or `repo` itself."""
    whole: Callable[[Path], Path] = lambda folder: folder
    """From a folder to the root of the repository that it is part of."""
    narrow: bool = False
    """Whether `repo` and `roots` are of one caller: it hears of no other repository."""

    @cached_property
    def _allowed(self) -> tuple[Path, ...]:
        return tuple(root.resolve() for root in (self.repo, *self.roots))

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders whose paths the caller may read."""
        return (self.repo, *self.roots, self._own)

    @cached_property
    def _own(self) -> Path:
        return self.own or self._allowed[0]

    def around(self, toolset: Toolset) -> Toolset:
        """The toolset, whose tools refuse what is outside."""
        return replace(toolset, tools=[self._around(tool) for tool in toolset.tools])

    def _around(self, tool: Tool) -> Tool:
        known = set(tool.input.get("properties", {}))
        if not self.narrow and not {REPOSITORY, CONFIG, *PATHS} & known:
            return tool
        errors = tuple(dict.fromkeys((*tool.errors, ErrorCode.FORBIDDEN)))
        named = REPOSITORY in known
        keep = named and (self.narrow or tool.hints.destructive)
        run = self._checked(tool.run, keep=keep)
        return replace(tool, run=run, errors=errors)

    def _checked(self, run: Handler, *, keep: bool) -> Handler:
        async def checked(arguments: Mapping[str, Any], context: Context) -> Any:
            if keep and not arguments.get(WORKSPACE):
                # Without a repository they mean the server's own, or every one on this machine.
                arguments = {REPOSITORY: str(self._own), **arguments}
            answer = await run(self.passed(arguments), context)
            return self._own_only(answer) if self.narrow else answer

        return checked

    def passed(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a call, with every place in them inside.

        Raises:
            ToolError: FORBIDDEN, one is outside; INVALID_REQUEST, one is no path.
        """
        if REPOSITORY in arguments:
            place = self.find(arguments[REPOSITORY])
            arguments = {**arguments, REPOSITORY: str(place)}
            base = self.whole(place)
        elif arguments.get(WORKSPACE):
            return {**arguments, **self._confined(arguments[WORKSPACE])}
        else:  # tools take the server's own, or none at all
            base = self._own
        for name in PATHS:
            if arguments.get(name):
                self._inside(name, base / arguments[name])
        for name, address in arguments.get(CONFIG, {}).items():
            if isinstance(address, str) and address.startswith(("/", "file:")):
                self._inside(name, Path(address.removeprefix("file:").removeprefix("//")))
        return arguments

    def find(self, given: str) -> Path:
        """The folder that a caller named, wherever links lead.

        Raises:
            ToolError: FORBIDDEN outside the fence, whether or not it exists, and when it is part
                of a repository that goes beyond it; INVALID_REQUEST inside it when it is no folder.
        """
        place, is_folder = _resolved(REPOSITORY, self.repo / given)
        if not self._holds(place):
            raise _outside(REPOSITORY)
        if not is_folder:
            raise ToolError(ErrorCode.INVALID_REQUEST, "repoPath is not an existing folder")
        if not self._holds(self.whole(place)):
            raise _outside("The repository around repoPath")
        return place

    def _inside(self, name: str, given: Path) -> Path:
        place, _ = _resolved(name, given)
        if not self._holds(place) and not place.is_relative_to(self._own):
            raise _outside(name)
        return place

    def _confined(self, workspace: str) -> dict[str, str]:
        """The arguments that keep a workspace to the widest folder around it that is allowed.

        The repositories in it are known to the tool alone, which keeps them in `repoPath`.
        """
        file = self._inside(WORKSPACE, self.repo / workspace)
        around = [each for each in (*self._allowed, self._own) if file.is_relative_to(each)]
        widest = min(around, key=lambda each: len(each.parts))
        return {WORKSPACE: str(file), REPOSITORY: str(self.find(str(widest)))}

    def _own_only(self, answer: Any) -> Any:
        """An answer without what it says about repositories that nobody asked for."""
        if not isinstance(answer, Mapping):
            return answer
        shown = dict(answer)
        around = shown.get("repository")  # check_status
        if isinstance(around, Mapping) and not self._known(around.get(REPOSITORY)):
            del shown["repository"]
        if isinstance(every := shown.get("allRepos"), list):  # report_artifacts
            shown["allRepos"] = [each for each in every if self._known(each.get("root"))]
        return shown

    def _known(self, root: object) -> bool:
        return isinstance(root, str) and self._holds(Path(root))

    def _holds(self, place: Path) -> bool:
        return place == self._own or any(place.is_relative_to(root) for root in self._allowed)


def _resolved(name: str, place: Path) -> tuple[Path, bool]:
    try:
        resolved = Path(usable(str(place))).resolve()
        return resolved, resolved.is_dir()
    except (OSError, ValueError, RuntimeError):  # a loop of links, a long name
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{name} is no usable path") from None


def _outside(what: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{what} is outside the folders that this server may serve",
        hint="The operator can allow more with CLEATS_HTTP_ROOTS.",
    )
