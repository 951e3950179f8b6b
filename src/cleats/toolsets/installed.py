"""Toolsets that other installed packages bring, found by the entry-point group `cleats.toolsets`.

An entry point is a name and a function: settings in, a `Toolset` of that name out. The installed
packages are looked through only when a name is not one of ours or none was given; a package is
imported only when its toolset is wanted. What it brings is held to the rules of
`contract.soundness`, what its tools answer to their output schemas, and whatever goes wrong in it
is told with its name.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from traceback import extract_tb
from typing import Any, Final

import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.soundness import SEMVER, flaws, names_of
from cleats.contract.tools import Context, Handler, Tool, Toolset
from cleats.contract.violations import Validator
from cleats.settings import SettingError, Settings

log = logging.getLogger(__name__)

GROUP: Final = "cleats.toolsets"

ROUTES: Final = "/toolsets"
"""Where HTTP routes of other packages are, each below its name; so none is in the way of ours."""


@cache  # what is installed does not change under a running program
def offers() -> Mapping[str, tuple[EntryPoint, ...]]:
    """What is installed, by name; more than one only where packages clash."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def package(point: EntryPoint) -> str:
    """The package that an entry point is of, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def packages(name: str) -> str:
    """Every package that offers this name."""
    return " and ".join(package(point) for point in offers().get(name, ()))


def beside(
    served: Sequence[Toolset], settings: Settings, *, ours: Collection[str]
) -> list[Toolset]:
    """Every toolset that can be served beside these; what cannot is skipped with a warning.

    A name that is one of ours is never theirs.
    """
    found: list[Toolset] = []
    for name in sorted(offers()):
        if name in ours:
            log.warning("toolset %r of %s is skipped: the name is ours", name, packages(name))
            continue
        try:
            found.append(brought(name, settings, [*served, *found]))
        except SettingError as error:
            log.warning("%s; it is skipped", error)
    return found


def brought(name: str, settings: Settings, served: Sequence[Toolset]) -> Toolset:
    """The toolset of this name, to be served beside these.

    Raises:
        SettingError: it does not load, or a tool of it has the name of one of theirs.
        KeyError: nothing installed has this name.
    """
    made = load(name, settings)
    homes = {each: there.name for there in served for each in _names(there)}
    for taken in (each for each in _names(made) if each in homes):
        whose = f"toolset {name!r} of {made.package}"
        raise SettingError(f"{whose} has a tool {taken!r}, and so has {homes[taken]!r}")
    return made


def _names(toolset: Toolset) -> list[str]:
    return [name for tool in toolset.tools for name in names_of(tool)]


def load(name: str, settings: Settings) -> Toolset:
    """Import and make the one toolset of this name.

    Raises:
        SettingError: two packages offer it, or it does not import, start or keep the rules.
        KeyError: nothing installed has this name.
    """
    points = offers()[name]
    if len(points) > 1:
        raise SettingError(f"toolset {name!r} is in {packages(name)}; uninstall all but one")
    point = points[0]
    whose = f"toolset {name!r} of {package(point)}"
    try:
        made = point.load()(settings)
    except (Exception, SystemExit) as error:  # it is not our code
        raise SettingError(f"{whose} does not load: {_told(error)}") from error
    if not isinstance(made, Toolset):
        raise SettingError(f"{whose} is no Toolset but {type(made).__name__}")
    if found := list(_broken_rules(name, made)):
        raise SettingError(f"{whose} breaks the contract's rules: {'; '.join(found)}")
    return replace(made, package=package(point), tools=tuple(map(_held, made.tools)))


def _held(tool: Tool) -> Tool:
    """The tool, held to what it says that it answers."""
    if tool.output is None:
        return tool
    return replace(tool, run=_checked(tool.name, tool.run, Validator(tool.output)))


def _checked(name: str, run: Handler, promised: Validator) -> Handler:
    async def checked(arguments: Mapping[str, Any], context: Context) -> Any:
        answer = await run(arguments, context)
        found = [each.as_json() for each in promised.violations(msgspec.to_builtins(answer))]
        if not found:
            return answer
        log.error("contract.breach tool=%s: its answer does not fit its output schema", name)
        raise ToolError(
            ErrorCode.INTERNAL,
            f"{name} answered something that does not fit its output schema.",
            hint="Whoever wrote the toolset can mend that; the violations are in the details.",
            details=found,
        )

    return checked


def _broken_rules(name: str, made: Toolset) -> Iterator[str]:
    yield from flaws(made)
    if made.name != name:
        yield f"it calls itself {made.name!r}"
    if not SEMVER.fullmatch(made.schema_version):
        yield f"its schema_version is {made.schema_version!r}, not three numbers"
    for route in made.routes:
        if not route.path.startswith(f"{ROUTES}/{name}/"):
            yield f"its route {route.path} is not below {ROUTES}/{name}/"


def _told(error: BaseException) -> str:
    """The cause, and the place in the package where it came up."""
    places = extract_tb(error.__traceback__)
    where = f" ({places[-1].filename}, line {places[-1].lineno})" if places else ""
    return f"{type(error).__name__}: {error}{where}"
