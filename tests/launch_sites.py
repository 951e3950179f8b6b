"""Sites to launch into: the bundled one, and one laid out as the `aspose` profile has it."""

import os
import shutil
import subprocess
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples" / "launch"

LAYOUTS = {
    f"layouts/{kind}.html": "<h1>{{ .Title }}</h1>{{ .Content }}"
    for kind in ("page", "section", "home")
}

FRONT = "---\ntitle: {title}\ndescription: About {title}.\nweight: 10\n---\n\nText.\n"


def aspose(root: Path, family: str) -> None:
    """Write a site of five hosts: one configuration for each, languages in folders."""
    files = dict(LAYOUTS)
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
        files[f"content/{host}/{family}/en/_index.md"] = FRONT.format(title=name)
        files[f"content/{host}/{family}/en/java/_index.md"] = FRONT.format(title="Java")
    files["configs/blog.aspose.org.toml"] = (
        'baseURL = "https://blog.aspose.org/"\ncontentDir = "content/blog.aspose.org"\n'
        'disableKinds = ["taxonomy", "term", "RSS", "sitemap"]\n[languages.en]\n[languages.de]\n'
    )
    files["content/blog.aspose.org/_index.md"] = (
        "---\ntitle: Blog\ndate: 2025-01-01\nauthor: Team\n---\n\nText.\n"
    )
    files[f"content/blog.aspose.org/{family}/java/news/index.md"] = (
        "---\ntitle: News\ndate: 2025-02-01\nauthor: Team\n---\n\nText.\n"
    )
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def sample(root: Path, part: str) -> None:
    """Copy a part of the bundled sample: `source` or `site`."""
    ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache", "public", "resources")
    shutil.copytree(EXAMPLES / part, root, ignore=ignored)


def committed(root: Path) -> str:
    """Make a repository of a folder; the commit is the same wherever the folder lies."""
    when = "2026-01-15T10:00:00Z"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Ann" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ann@example.com" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": when for who in ("AUTHOR", "COMMITTER")},
    }
    words = (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "All of it"])
    for each in words:
        subprocess.run(["git", *each], cwd=root, env=env, check=True, capture_output=True)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()
