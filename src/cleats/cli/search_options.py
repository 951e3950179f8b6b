"""The options of `cleats search`, made from the table of arguments: one for each, by topic."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from cleats.cli.asking import worded
from cleats.toolsets.code.search.arguments import ARGUMENTS, TOPICS, Argument, Topic

PREFIX = "given_"
"""Before the name of an argument, because some of them are words of the language."""


SAID: Final = {
    "ann": "Whether meaning counts beside words, as it does by default.",
    "repoPath": "The repository; that around here without it.",
    "workspacePath": "A file that names several repositories to search; see `cleats workspace`.",
}
"""What is otherwise for a person than for an agent."""


class ByTopic(click.Command):
    """A command whose options are listed under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[Topic, list[tuple[str, str]]] = {topic: [] for topic in TOPICS}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                listed[_topic(param.name or "")].append(record)
        for topic, records in listed.items():
            with formatter.section(TOPICS[topic]):
                formatter.write_dl(records)


def _topic(name: str) -> Topic:
    known = {argument.name: argument.topic for argument in ARGUMENTS}
    return known.get(name.removeprefix(PREFIX), "results")


def options() -> list[click.Option]:
    """One option for each argument that has a flag."""
    return [option for argument in ARGUMENTS if argument.flag for option in _options(argument)]


def _options(argument: Argument) -> Iterator[click.Option]:
    if argument.name == "output":
        yield _switch("compact", "One line for each hit.")
        yield _switch("full", "Everything that is known of each hit, and its whole text.")
        yield _switch("json", "Print the answer as JSON; --json --compact prints a short one.")
        return
    names = [argument.flag] if argument.name == "ann" else argument.flag.split("/")
    yield click.Option(
        [*names, PREFIX + argument.name], help=_about(argument), **_kind(argument.schema)
    )


def _about(argument: Argument) -> str:
    """What the table says, with flags for the names of arguments."""
    flags = {each.name: each.flag.split("/")[-1] for each in ARGUMENTS if each.flag}
    return SAID.get(argument.name) or worded(argument.about, flags)


def _switch(name: str, about: str) -> click.Option:
    return click.Option([f"--{name}", f"as_{name}"], is_flag=True, help=about)


def _kind(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What click has to know of a value; without a default, so that only what is given counts."""
    if "enum" in schema:
        return {"type": click.Choice(schema["enum"])}
    kind = schema["type"]
    if "array" in kind:
        return {"multiple": True, "metavar": "TEXT"}
    if "boolean" in kind:
        return {"default": None} | ({"is_flag": True} if kind == "boolean" else {})
    if kind == "integer":
        return {"type": click.IntRange(schema.get("minimum"), schema.get("maximum"))}
    return {"type": click.FloatRange(0)} if kind == "number" else {"metavar": "TEXT"}


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the tool, from what click found."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name.startswith(PREFIX) and value not in (None, ()):
            found[name.removeprefix(PREFIX)] = list(value) if isinstance(value, tuple) else value
    if "metaJson" in found:
        found["metaJson"] = found["metaJson"][0] if len(found["metaJson"]) == 1 else _all(found)
    return found


def _all(found: Mapping[str, Any]) -> str:
    """Several texts of JSON as one, which the tool reads and may refuse."""
    return "[" + ",".join(found["metaJson"]) + "]"
