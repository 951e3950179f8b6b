"""A small launch that passes every gate, for tests that break one thing at a time."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.changes import changes
from cleats.toolsets.launch.gates.runner import Verdict, judge
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.patching.patches import bundle, create_file
from cleats.toolsets.launch.profiles.model import load
from cleats.toolsets.launch.toolchain import locate
from cleats.toolsets.launch.workers.job import Job
from tests import launch_world

SHA = "1" * 40
REPO_URL = "https://github.com/acme/Shelf.Kit"
README = """\
# Shelf.Kit

Shelf.Kit keeps small records in one file.
It stores records in an ordered index.
Records can be exported to CSV and JSON.
Requires Python 3.11 or newer.
"""
PYPROJECT = '[project]\nname = "shelf-kit"\nversion = "1.2.0"\nrequires-python = ">=3.11"\n'
EXAMPLE = 'from shelf import Shelf\n\nshelf = Shelf("books.db")\nshelf.put("a", 1)\n'
SOURCE = {"README.md": README, "pyproject.toml": PYPROJECT, "examples/put.py": EXAMPLE}

STORES, EXPORTS, PYTHON, INSTALLS = (sign * 64 for sign in "abcd")


def claim(claim_id: str, text: str, path: str, line: int, **more: Any) -> dict[str, Any]:
    return {
        "claim_id": claim_id,
        "claim_text": text,
        "claim_kind": "feature",
        "truth_status": "fact",
        "citations": [
            {"path": path, "start_line": line, "end_line": line, "source_type": "manifest"}
        ],
        **more,
    }


CLAIMS = [
    claim(STORES, "Stores records in an ordered index.", "README.md", 4),
    claim(EXPORTS, "Exports records to CSV and JSON.", "README.md", 5, claim_kind="format"),
    claim(PYTHON, "Requires Python 3.11 or newer.", "pyproject.toml", 4, claim_kind="install"),
    claim(INSTALLS, "Installs with pip install shelf-kit.", "pyproject.toml", 2),
]

LAYOUT = "<!doctype html><html><body><h1>{{ .Title }}</h1>{{ .Content }}</body></html>\n"
SITE = {
    "hugo.toml": 'baseURL = "https://docs.example.org/"\ntitle = "Docs"\ndisableKinds = ["RSS"]\n',
    "layouts/_default/single.html": LAYOUT,
    "layouts/_default/list.html": LAYOUT,
    "content/_index.md": "---\ntitle: Home\n---\n\nWelcome.\n",
    "content/docs/_index.md": "---\ntitle: Documentation\n---\n\nAll of it.\n",
    "content/reference/_index.md": "---\ntitle: Reference\n---\n\nAll of it.\n",
    "static/logo.svg": "<svg/>\n",
}


def page(title: str, body: str) -> str:
    return f"---\ntitle: {title}\nweight: 10\n---\n\n{body.strip()}\n"


def marked(text: str, claim_id: str) -> str:
    return f"- {text} <!-- claim_id: {claim_id} -->"


TOC = "content/docs/shelf/_index.md"
INSTALLATION = "content/docs/shelf/installation.md"
START = "content/docs/shelf/getting-started.md"
GUIDE = "content/docs/shelf/developer-guide.md"
REFERENCE = "content/reference/shelf/_index.md"

PAGES = {
    TOC: page(
        "Shelf.Kit",
        """
Pages about Shelf.Kit.

## Contents

- [Installation](/docs/shelf/installation/)
- [Getting started](/docs/shelf/getting-started/)
- [Developer guide](/docs/shelf/developer-guide/)
""",
    ),
    INSTALLATION: page(
        "Installation",
        f"""
## Requirements

{marked("Requires Python 3.11 or newer.", PYTHON)}

## Install

{marked("Installs with `pip install shelf-kit`.", INSTALLS)}

```bash
pip install shelf-kit
```
""",
    ),
    START: page(
        "Getting started",
        f"""
## First steps

{marked("Stores records in an ordered index.", STORES)}

```python
{EXAMPLE.strip()}
```

## See also

- [Installation](../installation/#requirements)
""",
    ),
    GUIDE: page(
        "Developer guide",
        f"""
## Export

{marked("Exports records to CSV and JSON.", EXPORTS)}

![The logo](/logo.svg)
""",
    ),
    REFERENCE: page("API overview", "## Classes\n\nSee the [guide](/docs/shelf/developer-guide/)."),
}


def entry(path: str, slug: str, title: str, role: str, **more: Any) -> dict[str, Any]:
    section = path.split("/")[1]
    return {
        "section": section,
        "slug": slug,
        "output_path": path,
        "url_path": f"/{section}/shelf/" + ("" if slug == "_index" else f"{slug}/"),
        "title": title,
        "purpose": f"Shows {title.lower()}.",
        "required_headings": [],
        "required_claim_ids": [],
        "required_snippet_tags": [],
        "cross_links": [],
        "page_role": role,
        **more,
    }


PLAN = [
    entry(
        TOC,
        "_index",
        "Shelf.Kit",
        "toc",
        content_strategy={"child_pages": ["installation", "getting-started", "developer-guide"]},
    ),
    entry(
        INSTALLATION,
        "installation",
        "Installation",
        "workflow_page",
        required_headings=["Requirements", "Install"],
    ),
    entry(START, "getting-started", "Getting started", "workflow_page"),
    entry(
        GUIDE,
        "developer-guide",
        "Developer guide",
        "comprehensive_guide",
        content_strategy={"claim_quota": {"min": 1, "max": 5}, "scenario_coverage": "all"},
    ),
    entry(REFERENCE, "_index", "API overview", "api_reference"),
]

CONFIG = {
    "profile": "plain",
    "family": "shelf",
    "product_slug": "shelf",
    "product_name": "Shelf.Kit",
    "target_platform": "python",
    "github_repo_url": REPO_URL,
    "github_ref": SHA,
    "required_sections": ["docs", "reference"],
    "locales": ["en"],
    "allowed_paths": ["content/docs/shelf", "content/reference/shelf"],
    "validation_profile": "local",
    "budgets": {"max_files_changed": 100, "max_lines_per_file": 500},
    "allow_inference": False,
}
SECTION = {
    "sample_size": 3,
    "required_keys": ["title", "weight"],
    "optional_keys": [],
    "key_types": {"title": "string", "weight": "integer"},
    "default_values": {"weight": 10},
}


def documents(site_sha: str = SHA) -> dict[str, Any]:
    facts = {
        "schema_version": "1.0",
        "product_name": "Shelf.Kit",
        "product_slug": "shelf",
        "repo_url": REPO_URL,
        "repo_sha": SHA,
        "positioning": {"tagline": "Records in one file", "short_description": "Small records."},
        "supported_platforms": ["python"],
        "claims": [
            {key: each[key] for key in ("claim_id", "claim_text", "claim_kind", "truth_status")}
            for each in CLAIMS
        ],
        "claim_groups": {
            "key_features": [STORES],
            "install_steps": [INSTALLS],
            "quickstart_steps": [],
            "workflow_claims": [],
            "limitations": [],
            "compatibility_notes": [PYTHON],
        },
        "supported_formats": [{"format": "CSV", "status": "implemented", "claim_id": EXPORTS}],
        "workflows": [
            {
                "workflow_tag": "export",
                "title": "Export",
                "claim_ids": [EXPORTS],
                "snippet_tags": [],
            }
        ],
        "api_surface_summary": {"classes": [], "functions": [], "modules": []},
        "example_inventory": [],
        "distribution": [
            {
                "method": "pip",
                "identifier": "shelf-kit",
                "install_commands": ["pip install shelf-kit"],
            }
        ],
    }
    snippet = {
        "snippet_id": "sn_put",
        "language": "python",
        "tags": ["quickstart"],
        "source": {"type": "repo_file", "path": "examples/put.py", "start_line": 1, "end_line": 4},
        "code": EXAMPLE,
        "requirements": {"dependencies": ["shelf-kit"]},
        "validation": {"syntax_ok": True, "runnable_ok": "unknown"},
    }
    site = {"repo_url": "local:site", "requested_ref": "main", "resolved_sha": site_sha}
    return {
        "site_context.json": {
            "schema_version": "1.0",
            "site": site,
            "hugo": {"config_root": ".", "config_files": [], "build_matrix": []},
        },
        "frontmatter_contract.json": {
            "schema_version": "1.0",
            "site_repo_url": "local:site",
            "site_sha": site_sha,
            "sections": {"docs": SECTION, "reference": SECTION},
        },
        "product_facts.json": facts,
        "evidence_map.json": {
            "schema_version": "1.0",
            "repo_url": REPO_URL,
            "repo_sha": SHA,
            "claims": CLAIMS,
            "contradictions": [],
        },
        "snippet_catalog.json": {"schema_version": "1.0", "snippets": [snippet]},
        "page_plan.json": {
            "schema_version": "1.0",
            "product_slug": "shelf",
            "launch_tier": "standard",
            "pages": PLAN,
        },
        "patch_bundle.json": bundle(create_file(path, text) for path, text in PAGES.items()),
    }


@dataclass(frozen=True)
class World:
    """A run after its patches were applied."""

    job: Job
    base: str

    def write(self, path: str, text: str | bytes) -> None:
        file = self.job.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def read(self, path: str) -> str:
        return (self.job.site / path).read_bytes().decode()

    def edit(self, path: str, old: str, new: str) -> None:
        text = self.read(path)
        assert old in text
        self.write(path, text.replace(old, new))

    async def site(self, scratch: Path | None = None) -> Site:
        return Site(
            job=self.job,
            profile=load("plain"),
            level=self.job.config["validation_profile"],
            scratch=scratch or self.job.root / "work" / "scratch",
            changes=await changes(self.job.site, self.base, {}),
            programs={"hugo": locate("hugo", {})},
        )

    async def judge(self, gate: str, *, strict: bool = False) -> Verdict:
        return await judge(registry.load(gate), await self.site(), strict=strict)

    def verdict(self, gate: str, *, strict: bool = False) -> Verdict:
        return anyio.run(lambda: self.judge(gate, strict=strict))

    def codes(self, gate: str) -> list[tuple[str, str, int]]:
        """What a gate finds: code, file and line."""
        found = self.verdict(gate).issues
        return [(each.error_code, each.path, each.line) for each in found]


def world(
    tmp_path: Path,
    *,
    config: Mapping[str, Any] | None = None,
    artifacts: Mapping[str, Any] | None = None,
    site: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> World:
    """A launch of Shelf.Kit whose pages are in the worktree."""
    folder = tmp_path / "runs" / launch_world.RUN_ID / "work"
    for root, files in (("repo", SOURCE), ("site", {**SITE, **(site or {})})):
        for name, text in files.items():
            file = folder / root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    base = commit(folder / "site")
    job = launch_world.job(
        tmp_path,
        step="validate:1",
        worker="W7",
        config={**CONFIG, **(config or {})},
        artifacts={**documents(base), **(artifacts or {})},
        facts={"clone": {"site_sha": base}, "apply": {}},
        settings=settings,
    )
    made = World(job, base)
    for path, text in PAGES.items():
        made.write(path, text)
    return made


def commit(folder: Path) -> str:
    """Commit all that a folder holds; the same files give the same commit."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    env = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000", "PATH": "/usr/bin:/bin"}
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "site"]):
        subprocess.run(["git", *words], cwd=folder, check=True, env={**env, "HOME": str(folder)})
    said = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True)
    return said.stdout.decode().strip()
