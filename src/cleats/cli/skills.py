"""The `cleats skills` command: the skill catalogue for people, and for authors of skills."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleats.cli import output
from cleats.cli.guesses import GuessingGroup
from cleats.cli.output import echo_json, format_columns, format_count, is_json_requested, json_option, style_heading
from cleats.cli.tool_command import skill_options
from cleats.contract.errors import ToolError
from cleats.settings import Settings

if TYPE_CHECKING:
    from cleats.toolsets.skills.catalogue import SkillCatalogue
    from cleats.toolsets.skills.skill import Skill, SkillProblem


@click.group(cls=GuessingGroup)
@skill_options
def skills(settings: Settings) -> None:
    """List, search, validate, enable and create the skills of this machine.

    Skills are found in the project (.agent, .agents, .claude, up to the root of the repository), in your home
    folder, in the folders of other agents and in Claude plugins. If names collide, the first one is used.

    Examples:
      cleats skills list
      cleats skills search "fill in a form"
      cleats skills new release-notes
      cleats skills validate .agents/skills
    """
    click.get_current_context().obj = settings


@skills.command("list")
@click.option("--all", "everything", is_flag=True, help="Include disabled and hidden skills.")
@json_option
@skill_options
def list_(settings: Settings, *, everything: bool) -> None:
    """List the skills in order of precedence.

    Examples:
      cleats skills list
      cleats skills list --all
      cleats skills list --no-plugins --json
    """
    catalogue = _load_catalogue(settings)
    skill_states = [(skill, "on") for skill in catalogue.skills]
    if everything:
        skill_states += [(shadowed.skill, "hidden") for shadowed in catalogue.shadowed]
        skill_states += [(skill, "off") for skill in catalogue.disabled]
    if is_json_requested():
        echo_json([_skill_as_json(skill, state) for skill, state in skill_states])
        return
    if not skill_states:
        click.echo("No skills found. Run `cleats skills new NAME` to create one.")
    else:
        rows = [("SKILL", "FROM", "WHAT IT DOES")]
        for skill, state in skill_states:
            mark = "" if state == "on" else f"({state}) "
            rows.append((skill.full_name, skill.source.label, mark + skill.description))
        click.echo(format_columns(rows, indent="", cut=True))
    serious = [problem for problem in catalogue.problems if problem.severity != "info"]
    if serious:
        click.echo(f"\n{format_count(len(serious), 'problem')}:", err=True)
        _echo_problems(serious[:10])
        if len(serious) > 10:
            click.echo(f"... and {len(serious) - 10} more.", err=True)


@skills.command()
@click.argument("name")
@click.option("--full", is_flag=True, help="Print the full text, as an agent gets it.")
@json_option
@skill_options
def info(settings: Settings, name: str, *, full: bool) -> None:
    """Show a skill: its location, description and files.

    Examples:
      cleats skills info pdf
      cleats skills info example-skills:pdf --full

    Exits 1 if the skill does not exist or the name is ambiguous.
    """
    from cleats.toolsets.skills.files import list_files, load_skill_text  # noqa: PLC0415 - help needs none of these
    from cleats.toolsets.skills.publishing import render_skill  # noqa: PLC0415

    skill = _find_skill(_load_catalogue(settings), name)
    try:
        text = load_skill_text(skill)
    except (ToolError, OSError) as error:
        raise click.ClickException(str(error)) from None
    files = list_files(skill, 200)
    paths = [file.relative_path for file in files]
    if is_json_requested():
        echo_json({**_skill_as_json(skill, "on"), "files": paths, "text": text})
        return
    if full:
        click.echo(render_skill(skill, text).encode(), nl=False)
        return
    facts = [
        ("from", f"{skill.source.label}  ({skill.source.scope})"),
        ("folder", skill.folder),
        ("uri", skill.uri if skill.publishable else "none: the skill is invalid, see below"),
        ("size", f"{output.format_bytes(skill.stamp.size)}, {format_count(len(files), 'file')}"),
    ]
    click.echo(
        f"{style_heading(skill.full_name)}\n{output.format_paragraphs(skill.description)}\n\n{format_columns(facts)}"
    )
    click.echo("\n" + style_heading("Files") + "\n" + "\n".join(f"  {path}" for path in paths))
    preview = text.splitlines()
    click.echo("\n" + style_heading("Text") + "\n" + "\n".join(f"  {line}".rstrip() for line in preview[:20]))
    if len(preview) > 20:
        click.echo(f"  ... {len(preview) - 20} more lines; --full shows them.")
    _echo_problems(skill.problems)


@skills.command()
@click.argument("query")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Number of results.")
@json_option
@skill_options
def search(settings: Settings, query: str, *, limit: int) -> None:
    """Find skills by what they are about.

    Searches names, descriptions and texts; best match first.

    Examples:
      cleats skills search "fill in a PDF form"
      cleats skills search spreadsheets --limit 3 --json

    Exits 1 if nothing matches.
    """
    from cleats.toolsets.skills.search import search_skills  # noqa: PLC0415 - help needs none of these

    matches = search_skills(_load_catalogue(settings).skills, query, limit)
    if is_json_requested():
        echo_json([{**_skill_as_json(match.skill, "on"), "score": round(match.score, 3)} for match in matches])
    elif matches:
        rows = [(match.skill.full_name, match.skill.description) for match in matches]
        click.echo(format_columns(rows, indent="", cut=True))
    else:
        click.echo("No skill matches. `cleats skills list` lists all skills.", err=True)
    sys.exit(0 if matches else 1)


@skills.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@json_option
@click.pass_obj
def validate(settings: Settings, paths: tuple[Path, ...], *, strict: bool) -> None:
    """Check skills against the Agent Skills specification.

    Every finding says how to fix it.

    PATHS are SKILL.md files, skill folders, or folders of skills. [default: all skills of the project and the
    user]

    Examples:
      cleats skills validate
      cleats skills validate .agents/skills/release-notes
      cleats skills validate skills --strict --json

    Exits 1 if a rule is violated, 2 if there is nothing to check.
    """
    from cleats.toolsets.skills.authoring import validate_skill  # noqa: PLC0415 - help needs none of these
    from cleats.toolsets.skills.sources import list_sources  # noqa: PLC0415

    checked_paths = paths or [Path(source.path) for source in list_sources(settings)]
    files = [file for path in checked_paths for file in _find_skill_files(path)]
    if not files:
        raise click.UsageError("No SKILL.md found.")
    findings = {file: validate_skill(file) for file in files}
    failing = {"error", "warning"} if strict else {"error"}
    failed = any(problem.severity in failing for problems in findings.values() for problem in problems)
    checked = [
        {"path": file, "findings": [problem.as_json() for problem in problems]} for file, problems in findings.items()
    ]
    output.print_answer({"ok": not failed, "skills": checked}, lambda _answer: _render_findings(findings))
    sys.exit(1 if failed else 0)


def _render_findings(findings: "Mapping[str, Sequence[SkillProblem]]") -> Iterator[str]:
    for file, problems in findings.items():
        yield f"{file}: " + ("ok" if not problems else format_count(len(problems), "finding"))
        for problem in problems:
            yield f"  {problem.severity}: {problem.message}\n    {problem.fix}"


@skills.command()
@click.argument("names", nargs=-1, required=True)
@click.pass_obj
def disable(settings: Settings, names: tuple[str, ...]) -> None:
    """Hide skills from agents. Their files are not changed.

    Example: cleats skills disable pdf example-skills:docx
    """
    from cleats.toolsets.skills.selection import switch_off  # noqa: PLC0415 - help needs none of these

    catalogue = _load_catalogue(settings)
    chosen, already_disabled = [], []
    for name in names:
        disabled_matches = _filter_by_name(name, catalogue.disabled)
        try:
            chosen.append(_find_skill(catalogue, name))
        except click.ClickException:
            if not disabled_matches:
                raise
            already_disabled += disabled_matches
    _apply_switch(switch_off, settings, chosen)
    for skill in chosen:
        click.echo(f"{skill.full_name} is off. Running servers notice within half a minute.")
    for skill in already_disabled:
        click.echo(f"{skill.full_name} is already off.")


@skills.command()
@click.argument("names", nargs=-1, required=True)
@click.pass_obj
def enable(settings: Settings, names: tuple[str, ...]) -> None:
    """Show skills to agents again.

    Example: cleats skills enable pdf
    """
    from cleats.toolsets.skills.selection import switch_on  # noqa: PLC0415 - help needs none of these

    catalogue = _load_catalogue(settings)
    chosen = [(name, _filter_by_name(name, catalogue.disabled)) for name in names]
    already_enabled = [_find_skill(catalogue, name) for name, disabled_skills in chosen if not disabled_skills]
    disabled_skills = [skill for _, skills in chosen for skill in skills]
    _apply_switch(switch_on, settings, disabled_skills)
    for name in dict.fromkeys(skill.full_name for skill in disabled_skills):
        click.echo(f"{name} is on. Running servers notice within half a minute.")
    for skill in already_enabled:
        click.echo(f"{skill.full_name} is already on.")


@skills.command()
@click.argument("name")
@click.option("--description", default="", help="What the skill does and when to use it.")
@click.option("--user", is_flag=True, help="Create it in your home folder instead of the project.")
@click.option("--dir", "folder", type=click.Path(path_type=Path), help="Create it in this folder.")
@click.pass_obj
def new(settings: Settings, name: str, *, description: str, user: bool, folder: Path | None) -> None:
    """Create a skill that follows the specification.

    The skill is created in .agents/skills of the project, where most agents look; Claude Code needs --dir
    .claude/skills. Edit the skill, then run `cleats skills validate`.

    Examples:
      cleats skills new release-notes
      cleats skills new release-notes --user --description "Write release notes from a git log."
    """
    from cleats.toolsets.skills.authoring import BadSkillError, write_skill  # noqa: PLC0415 - help needs none of these

    base = settings.home if user else settings.project_dir
    try:
        path = write_skill(folder or base / ".agents" / "skills", name, description)
    except BadSkillError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        message = f"{error.filename}: {error.strerror}. Use --dir or --user to create it elsewhere."
        raise click.ClickException(message) from None
    click.echo(f"Wrote {path}")


def _load_catalogue(settings: Settings) -> "SkillCatalogue":
    from cleats.toolsets.skills.library import SkillLibrary  # noqa: PLC0415 - help needs none of it

    return SkillLibrary(settings).catalogue


def _find_skill(catalogue: "SkillCatalogue", name: str) -> "Skill":
    if (skill := catalogue.for_people.get(name)) is not None:
        return skill
    try:
        return catalogue.find(name)
    except ToolError as error:
        if is_json_requested():
            echo_json({"ok": False, "error": error.as_json()})
            sys.exit(1)
        advice = error.hint if error.details and any(error.details.values()) else ""
        raise click.ClickException(f"{error.message} {advice or '`cleats skills list` shows them all.'}") from None


def _filter_by_name(name: str, skills: "Sequence[Skill]") -> "list[Skill]":
    key = name.casefold()
    return [skill for skill in skills if key in {skill.full_name.casefold(), skill.name.casefold()}]


def _apply_switch(change: Any, settings: Settings, chosen: "Sequence[Skill]") -> None:
    try:
        change(settings, chosen)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None


def _find_skill_files(path: Path) -> list[str]:
    """Return the skill files at a path: the file itself, the one in the folder, or all below it."""
    from cleats.toolsets.skills.scan import SkillTree  # noqa: PLC0415 - help needs none of these
    from cleats.toolsets.skills.skill import Skill, SkillSource  # noqa: PLC0415

    if path.is_file():
        return [str(path)]
    tree = SkillTree(SkillSource(path=str(path.absolute()), scope="custom", label="here"))
    tree.scan()
    results = tree.iter_results()
    return sorted(scanned.path if isinstance(scanned, Skill) else scanned.problem.path for scanned in results)


def _skill_as_json(skill: "Skill", state: str) -> dict[str, Any]:
    source = skill.source
    fields: dict[str, Any] = {"name": skill.full_name, "description": skill.description, "state": state}
    fields |= {"scope": source.scope, "from": source.label, "path": skill.path}
    if source.plugin:
        fields |= {"plugin": source.plugin, "marketplace": source.marketplace}
    if skill.publishable:
        fields["uri"] = skill.uri
    if skill.problems:
        fields["problems"] = [problem.as_json() for problem in skill.problems]
    return fields


def _echo_problems(problems: "Sequence[SkillProblem]") -> None:
    for problem in problems:
        where = f"{problem.path}: " if problem.path else ""
        click.echo(f"  {problem.severity}: {where}{problem.message}", err=True)
        click.echo(f"    {problem.fix}", err=True)
