"""Local checkouts that git finds at GitHub addresses."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.support.git_repositories import GitCheckout

GITHUB_URL = "https://github.com"


def create_repository(folder: Path, files: Mapping[str, str]) -> GitCheckout:
    """Create a repository with one commit."""
    checkout = GitCheckout.create(folder)
    for name, text in files.items():
        checkout.write_file(name, text)
    checkout.commit()
    return checkout


def redirect_github(folder: Path, repositories: Mapping[str, Path]) -> dict[str, str]:
    """Return an environment in which git finds only these repositories on GitHub.

    The repositories are keyed by owner and name.
    """
    lines = [f'[url "file://{folder}/nowhere/"]\n\tinsteadOf = {GITHUB_URL}/\n']
    lines += [f'[url "file://{path}"]\n\tinsteadOf = {GITHUB_URL}/{name}\n' for name, path in repositories.items()]
    config = folder / "gitconfig"
    config.write_text("".join(lines))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(config),
    }
