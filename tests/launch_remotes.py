"""Repositories of GitHub, as far as git can tell: checkouts on this machine under its addresses."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.git_world import Checkout

GITHUB = "https://github.com"


def repository(folder: Path, files: Mapping[str, str]) -> Checkout:
    """A repository with one commit."""
    made = Checkout.new(folder)
    for name, text in files.items():
        made.write(name, text)
    made.commit()
    return made


def github(folder: Path, repositories: Mapping[str, Path]) -> dict[str, str]:
    """An environment in which git finds these, by owner and name, and nothing else, on GitHub."""
    lines = [f'[url "file://{folder}/nowhere/"]\n\tinsteadOf = {GITHUB}/\n']
    lines += [
        f'[url "file://{place}"]\n\tinsteadOf = {GITHUB}/{name}\n'
        for name, place in repositories.items()
    ]
    config = folder / "gitconfig"
    config.write_text("".join(lines))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(config),
    }
