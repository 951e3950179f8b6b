"""The `cleats token` command."""

import json
from pathlib import Path

import click


@click.group()
def token() -> None:
    """Tokens of the HTTP API, kept as hashes in the file that CLEATS_HTTP_TOKENS names.

    \b
    Examples:
      cleats token new ci --toolset code --per-minute 120
    """  # noqa: D301 - click reads the backspace


@token.command()
@click.argument("name")
@click.option("--toolset", "toolsets", multiple=True, help="A toolset it may use; all without.")
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A repository, or a folder of them, that it may name; the server's own without.",
)
@click.option("--per-minute", type=click.FloatRange(0, min_open=True), help="Requests a minute.")
@click.option("--burst", type=click.IntRange(1), help="How many of them at once.")
@click.option("--json", "as_json", is_flag=True, help="Print {token, entry}.")
def new(
    name: str,
    toolsets: tuple[str, ...],
    repositories: tuple[Path, ...],
    per_minute: float | None,
    burst: int | None,
    *,
    as_json: bool,
) -> None:
    """Make a token for NAME, and print it with its entry.

    It is shown this once and kept nowhere; the entry, for the file of tokens, has its hash only.
    Servers read the file when they start. To take a token back, remove its entry and restart them.

    \b
    Examples:
      cleats token new ci --toolset code --repository /srv/repos --per-minute 120
    """  # noqa: D301 - click reads the backspace
    from cleats.transports.http.tokens import AccessToken, format_entry, generate_token, hash_token, is_token_name  # noqa: PLC0415

    if not is_token_name(name):
        raise click.UsageError("NAME may have 64 letters, digits and any of _ . @ -")
    secret = generate_token()
    entry_text = format_entry(
        AccessToken(
            name=name,
            sha256=hash_token(secret),
            toolsets=toolsets or None,
            repositories=tuple(folder.resolve() for folder in repositories) or None,
            per_minute=per_minute,
            burst=burst,
        )
    )
    if as_json:
        click.echo(json.dumps({"token": secret, "entry": entry_text}))
        return
    click.echo(f"{secret}\n")
    click.echo("# That is the token, shown this once. Add this to the file of tokens:")
    click.echo(entry_text, nl=False)
