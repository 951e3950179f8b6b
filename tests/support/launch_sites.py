"""Sites to launch into: the bundled one, and one with the layout of the `aspose` profile."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.support.paths import REPOSITORY_ROOT

EXAMPLES_FOLDER = REPOSITORY_ROOT / "examples" / "launch"

LAYOUT_FILES = {f"layouts/{kind}.html": "<h1>{{ .Title }}</h1>{{ .Content }}" for kind in ("page", "section", "home")}

PAGE_TEMPLATE = "---\ntitle: {title}\ndescription: About {title}.\nweight: 10\n---\n\nText.\n"


def write_aspose_site(root: Path, family: str) -> None:
    """Write a site of five hosts with a configuration for each and languages in folders."""
    files = dict(LAYOUT_FILES)
    for name in ("products", "docs", "kb", "reference"):
        host = f"{name}.aspose.org"
        files[f"configs/{host}/{family}.toml"] = (
            f'baseURL = "https://{host}/{family}/"\n'
            'disableKinds = ["taxonomy", "term", "RSS", "sitemap"]\n'
            "[languages.en]\n"
            f'contentDir = "content/{host}/{family}/en"\n'
            "[languages.de]\n"
            f'contentDir = "content/{host}/{family}/de"\n'
        )
        files[f"content/{host}/{family}/en/_index.md"] = PAGE_TEMPLATE.format(title=name)
        files[f"content/{host}/{family}/en/java/_index.md"] = PAGE_TEMPLATE.format(title="Java")
    files["configs/blog.aspose.org.toml"] = (
        'baseURL = "https://blog.aspose.org/"\ncontentDir = "content/blog.aspose.org"\n'
        'disableKinds = ["taxonomy", "term", "RSS", "sitemap"]\n[languages.en]\n[languages.de]\n'
    )
    files["content/blog.aspose.org/_index.md"] = "---\ntitle: Blog\ndate: 2025-01-01\nauthor: Team\n---\n\nText.\n"
    files[f"content/blog.aspose.org/{family}/java/news/index.md"] = (
        "---\ntitle: News\ndate: 2025-02-01\nauthor: Team\n---\n\nText.\n"
    )
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


MKDOCS_CONFIG = """\
site_name: Packages  # the name in the header
site_url: https://docs.example.org/kits/

nav:
  - Home: index.md
  - 'Who we are': about/index.md   # written by Ann

theme: readthedocs
"""


def write_mkdocs_site(root: Path, config: str = MKDOCS_CONFIG) -> None:
    """Write a small site of MkDocs, with a navigation and without front matter."""
    files = {
        "mkdocs.yml": config,
        "docs/index.md": "# Packages\n\nSee [about](about/index.md).\n",
        "docs/about/index.md": "# About\n\nWe write packages.\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def copy_sample(root: Path, part: str) -> None:
    """Copy a part of the bundled sample: `source` or `site`."""
    ignore_build_outputs = shutil.ignore_patterns("__pycache__", ".pytest_cache", "public", "resources")
    shutil.copytree(EXAMPLES_FOLDER / part, root, ignore=ignore_build_outputs)


def commit_folder(root: Path) -> str:
    """Make a folder a repository and return its commit, which does not depend on the location."""
    commit_date = "2026-01-15T10:00:00Z"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_NAME": "Ann" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "ann@example.com" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_DATE": commit_date for role in ("AUTHOR", "COMMITTER")},
    }
    git_commands = (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "All of it"])
    for arguments in git_commands:
        subprocess.run(["git", *arguments], cwd=root, env=env, check=True, capture_output=True)
    completed = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, env=env, check=True, capture_output=True, text=True
    )
    return completed.stdout.strip()
