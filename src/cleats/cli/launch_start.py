"""`cleats launch start`: a configuration or an address in, a run out, driven here."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cleats.cli.launch_calls import Desk, fail, run
from cleats.cli.launch_drive import moved, show
from cleats.cli.printing import echo_json
from cleats.settings import Settings


@click.command()
@click.argument("config", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--product-url", help="Start from the address of a product page instead.")
@click.option("--repo-url", help="Start from the address of a GitHub repository instead.")
@click.option("--key", help="Idempotency key: the same key and meaning give the same run.")
@click.option("--no-drive", is_flag=True, help="Only create the run; an agent or `resume` goes on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.pass_obj
def start(
    settings: Settings,
    config: str | None,
    *,
    product_url: str | None,
    repo_url: str | None,
    key: str | None,
    no_drive: bool,
    as_json: bool,
) -> None:
    """Start a run from CONFIG, or from an address.

    CONFIG is a YAML, JSON or TOML file. The run is driven here, with a view of it, to its first
    decision; Ctrl-C leaves it at its last recorded step, and `cleats launch resume` goes on.

    \b
    Examples:
      cleats launch start run.yaml
      cleats launch start --product-url https://products.aspose.org/3d/en/python/
      cleats launch start --repo-url https://github.com/owner/name --no-drive --json
    """  # noqa: D301 - click reads the backspace
    tool, arguments = _request(config, product_url, repo_url)

    async def work(desk: Desk) -> dict[str, Any]:
        answer = await desk.call(tool, idempotency_key=key, **arguments)
        if not answer["ok"] or no_drive:
            return answer
        if not as_json:
            click.echo(answer["run_id"], err=True)
        return await moved(desk, "resume", answer["run_id"])

    answer = run(settings, work)
    if not answer["ok"]:
        fail(answer)
    if "status" in answer:
        show(answer)
    echo_json(answer) if as_json else click.echo(answer["run_id"])


def _request(
    config: str | None, product_url: str | None, repo_url: str | None
) -> tuple[str, dict[str, Any]]:
    given = [each for each in (config, product_url, repo_url) if each is not None]
    if len(given) != 1:
        raise click.UsageError("Give one of CONFIG, --product-url and --repo-url.")
    if product_url is not None:
        return "start_run_from_product_url", {"url": product_url}
    if repo_url is not None:
        return "start_run_from_github_repo_url", {"github_repo_url": repo_url}
    return "start_run", {"run_config": read(Path(given[0]))}


def read(path: Path) -> Mapping[str, Any]:
    """The configuration in a file, by the ending of its name; JSON is YAML too."""
    try:
        text = path.read_text(encoding="utf-8")
        match path.suffix.lower():
            case ".json":
                document = json.loads(text)
            case ".toml":
                document = tomllib.loads(text)
            case _:
                import yaml  # noqa: PLC0415 - help needs none of it

                try:
                    document = yaml.safe_load(text)
                except yaml.YAMLError as error:
                    raise ValueError(str(error)) from None
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: {error}") from None
    if not isinstance(document, dict):
        raise click.UsageError(f"{path}: a configuration is a table of names and values.")
    return document
