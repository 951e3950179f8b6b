"""Toolsets of other installed packages, found by the entry-point group `cleats.toolsets`.

An entry point is a name and a function from settings to a `Toolset` of that name. The installed packages are searched
only when a name is not built in or no name was given; a package is imported only when its toolset is requested. The
toolset must keep the rules of `contract.toolset_rules`, the answers of its tools must fit their output schemas, and
every failure is reported with the name of the package.
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
from cleats.contract.tools import Context, Tool, Toolset
from cleats.contract.toolset_rules import find_flaws, list_tool_names
from cleats.contract.versions import RELEASE_VERSION_PATTERN
from cleats.contract.violations import Validator
from cleats.settings import SettingError, Settings

log = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "cleats.toolsets"

PLUGIN_ROUTE_PREFIX: Final = "/toolsets"
"""The path prefix of HTTP routes of other packages, each below its name, so that none hides ours."""


@cache  # what is installed does not change under a running program
def installed_toolsets() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the installed entry points by name; more than one only where packages clash."""
    points_by_name: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        points_by_name[point.name] = (*points_by_name.get(point.name, ()), point)
    return points_by_name


def describe_package(point: EntryPoint) -> str:
    """Describe the package of an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def describe_packages(name: str) -> str:
    """Describe every package that provides this name."""
    return " and ".join(describe_package(point) for point in installed_toolsets().get(name, ()))


def load_plugin_toolsets(
    served_toolsets: Sequence[Toolset], settings: Settings, *, builtin_names: Collection[str]
) -> list[Toolset]:
    """Load every toolset that can be served with these; skip the others with a warning.

    A built-in name always refers to the built-in toolset.
    """
    loaded: list[Toolset] = []
    for name in sorted(installed_toolsets()):
        if name in builtin_names:
            log.warning("toolset %r of %s is skipped: a built-in toolset has this name", name, describe_packages(name))
            continue
        try:
            loaded.append(load_plugin_toolset(name, settings, [*served_toolsets, *loaded]))
        except SettingError as error:
            log.warning("%s; it is skipped", error)
    return loaded


def load_plugin_toolset(name: str, settings: Settings, served_toolsets: Sequence[Toolset]) -> Toolset:
    """Load the toolset of this name, to be served with these.

    Raises:
        SettingError: It does not load, or one of its tools has the name of another tool.
        KeyError: Nothing installed has this name.
    """
    toolset = import_toolset(name, settings)
    toolsets_by_tool = {tool_name: other.name for other in served_toolsets for tool_name in _collect_tool_names(other)}
    for duplicate in (tool_name for tool_name in _collect_tool_names(toolset) if tool_name in toolsets_by_tool):
        label = f"toolset {name!r} of {toolset.package}"
        raise SettingError(f"{label} has a tool {duplicate!r}, which is also in {toolsets_by_tool[duplicate]!r}")
    return toolset


def _collect_tool_names(toolset: Toolset) -> list[str]:
    return [name for tool in toolset.tools for name in list_tool_names(tool)]


def import_toolset(name: str, settings: Settings) -> Toolset:
    """Import and create the only toolset of this name.

    Raises:
        SettingError: Two packages provide it, or it cannot be imported or created, or it breaks the rules.
        KeyError: Nothing installed has this name.
    """
    points = installed_toolsets()[name]
    if len(points) > 1:
        raise SettingError(f"toolset {name!r} is in {describe_packages(name)}; uninstall all but one")
    point = points[0]
    label = f"toolset {name!r} of {describe_package(point)}"
    try:
        toolset = point.load()(settings)
    except (Exception, SystemExit) as error:  # it is not our code
        raise SettingError(f"{label} cannot be loaded: {_describe_load_error(error)}") from error
    if not isinstance(toolset, Toolset):
        raise SettingError(f"{label} is not a Toolset but a {type(toolset).__name__}")
    if broken_rules := list(_find_broken_rules(name, toolset)):
        raise SettingError(f"{label} breaks the contract's rules: {'; '.join(broken_rules)}")
    return replace(toolset, package=describe_package(point), tools=tuple(map(_enforce_output_schema, toolset.tools)))


def _enforce_output_schema(tool: Tool) -> Tool:
    """Return the tool with its answers checked against its output schema."""
    if tool.output is None:
        return tool
    name, validator = tool.name, Validator(tool.output)

    async def run_checked(arguments: Mapping[str, Any], context: Context) -> Any:
        answer = await tool.run(arguments, context)
        violations = [violation.as_json() for violation in validator.find_violations(msgspec.to_builtins(answer))]
        if not violations:
            return answer
        log.error("contract.breach tool=%s: its result does not match its output schema", name)
        raise ToolError(
            ErrorCode.INTERNAL,
            f"The result of {name} does not match its output schema.",
            hint="Report this to the author of the toolset; the violations are in the details.",
            details=violations,
        )

    return replace(tool, run=run_checked)


def _find_broken_rules(name: str, toolset: Toolset) -> Iterator[str]:
    yield from find_flaws(toolset)
    if toolset.name != name:
        yield f"its name is {toolset.name!r}"
    if not RELEASE_VERSION_PATTERN.fullmatch(toolset.schema_version):
        yield f"its schema_version is {toolset.schema_version!r}, not three numbers"
    for route in toolset.routes:
        if not route.path.startswith(f"{PLUGIN_ROUTE_PREFIX}/{name}/"):
            yield f"its route {route.path} is not below {PLUGIN_ROUTE_PREFIX}/{name}/"


def _describe_load_error(error: BaseException) -> str:
    """Describe the cause, and the location in the package where it was raised."""
    frames = extract_tb(error.__traceback__)
    location = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{location}"
