"""A small launch that passes every gate, for tests that break one thing at a time."""

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.registry import GateVerdict, run_gate
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.gates.worktree import list_changes
from cleats.toolsets.launch.patching.patches import make_bundle, make_create_patch
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site.claim_markers import refresh_evidence_list
from cleats.toolsets.launch.site.programs import locate_program
from tests.support import launch_runs as launch_world

SOURCE_SHA = "1" * 40
REPO_URL = "https://github.com/acme/Shelf.Kit"
README_TEXT = """\
# Shelf.Kit

Shelf.Kit keeps small records in one file.
It stores records in an ordered index.
Records can be exported to CSV and JSON.
Requires Python 3.11 or newer.
"""
PYPROJECT_TEXT = '[project]\nname = "shelf-kit"\nversion = "1.2.0"\nrequires-python = ">=3.11"\n'
FAILED_CODE = "from shelf import Shelf\n\nShelf.burn()\n"
EXAMPLE_CODE = 'from shelf import Shelf\n\nshelf = Shelf("books.db")\nshelf.put("a", 1)\n'
SOURCE_FILES = {"README.md": README_TEXT, "pyproject.toml": PYPROJECT_TEXT, "examples/put.py": EXAMPLE_CODE}

STORES_CLAIM_ID, EXPORTS_CLAIM_ID, PYTHON_CLAIM_ID, INSTALLS_CLAIM_ID = (sign * 8 for sign in "abcd")


def build_claim(claim_id: str, text: str, path: str, line: int, **overrides: Any) -> dict[str, Any]:
    return {
        "claim_id": claim_id,
        "claim_text": text,
        "claim_kind": "feature",
        "truth_status": "fact",
        "citations": [{"path": path, "start_line": line, "end_line": line, "source_type": "manifest"}],
        **overrides,
    }


EVIDENCE_CLAIMS = [
    build_claim(STORES_CLAIM_ID, "Stores records in an ordered index.", "README.md", 4),
    build_claim(EXPORTS_CLAIM_ID, "Exports records to CSV and JSON.", "README.md", 5, claim_kind="format"),
    build_claim(PYTHON_CLAIM_ID, "Requires Python 3.11 or newer.", "pyproject.toml", 4, claim_kind="install"),
    build_claim(INSTALLS_CLAIM_ID, "Installs with pip install shelf-kit.", "pyproject.toml", 2),
]

HUGO_LAYOUT = "<!doctype html><html><body><h1>{{ .Title }}</h1>{{ .Content }}</body></html>\n"
SITE_FILES = {
    "hugo.toml": 'baseURL = "https://docs.example.org/"\ntitle = "Docs"\ndisableKinds = ["RSS"]\n',
    "layouts/_default/single.html": HUGO_LAYOUT,
    "layouts/_default/list.html": HUGO_LAYOUT,
    "content/_index.md": "---\ntitle: Home\n---\n\nWelcome.\n",
    "content/docs/_index.md": "---\ntitle: Documentation\n---\n\nAll of it.\n",
    "content/reference/_index.md": "---\ntitle: Reference\n---\n\nAll of it.\n",
    "static/logo.svg": "<svg/>\n",
}


def render_page(title: str, body: str) -> str:
    page = f"---\ntitle: {title}\nweight: 10\n---\n\n{body.strip()}\n"
    return list_evidence(page, EVIDENCE_CLAIMS)


def list_evidence(page: str, claims: Iterable[Mapping[str, Any]]) -> str:
    """Return a page with the list of evidence of its claims."""
    return refresh_evidence_list(page, {claim["claim_id"]: claim for claim in claims}, SOURCE_SHA)


def mark_claim(text: str, claim_id: str) -> str:
    return f"- {text} <!-- claims: {claim_id} -->"


TOC_PATH = "content/docs/shelf/_index.md"
INSTALLATION_PATH = "content/docs/shelf/installation.md"
START_PATH = "content/docs/shelf/getting-started.md"
GUIDE_PATH = "content/docs/shelf/developer-guide.md"
REFERENCE_PATH = "content/reference/shelf/_index.md"

PAGE_TEXTS = {
    TOC_PATH: render_page(
        "Shelf.Kit",
        """
Pages about Shelf.Kit.

## Contents

- [Installation](/docs/shelf/installation/)
- [Getting started](/docs/shelf/getting-started/)
- [Developer guide](/docs/shelf/developer-guide/)
""",
    ),
    INSTALLATION_PATH: render_page(
        "Installation",
        f"""
## Requirements

{mark_claim("Requires Python 3.11 or newer.", PYTHON_CLAIM_ID)}

## Install

{mark_claim("Installs with `pip install shelf-kit`.", INSTALLS_CLAIM_ID)}

```bash
pip install shelf-kit
```
""",
    ),
    START_PATH: render_page(
        "Getting started",
        f"""
## First steps

{mark_claim("Stores records in an ordered index.", STORES_CLAIM_ID)}

```python
{EXAMPLE_CODE.strip()}
```

## See also

- [Installation](../installation/#requirements)
""",
    ),
    GUIDE_PATH: render_page(
        "Developer guide",
        f"""
## Export

{mark_claim("Exports records to CSV and JSON.", EXPORTS_CLAIM_ID)}

![The logo](/logo.svg)
""",
    ),
    REFERENCE_PATH: render_page("API overview", "## Classes\n\nSee the [guide](/docs/shelf/developer-guide/)."),
}


def build_plan_entry(path: str, slug: str, title: str, role: str, **overrides: Any) -> dict[str, Any]:
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
        **overrides,
    }


PAGE_PLAN = [
    build_plan_entry(
        TOC_PATH,
        "_index",
        "Shelf.Kit",
        "toc",
        content_strategy={"child_pages": ["installation", "getting-started", "developer-guide"]},
    ),
    build_plan_entry(
        INSTALLATION_PATH,
        "installation",
        "Installation",
        "workflow_page",
        required_headings=["Requirements", "Install"],
    ),
    build_plan_entry(START_PATH, "getting-started", "Getting started", "workflow_page"),
    build_plan_entry(
        GUIDE_PATH,
        "developer-guide",
        "Developer guide",
        "comprehensive_guide",
        content_strategy={"claim_quota": {"min": 1, "max": 5}, "scenario_coverage": "all"},
    ),
    build_plan_entry(REFERENCE_PATH, "_index", "API overview", "api_reference"),
]

RUN_CONFIG = {
    "profile": "plain",
    "family": "shelf",
    "product_slug": "shelf",
    "product_name": "Shelf.Kit",
    "target_platform": "python",
    "github_repo_url": REPO_URL,
    "github_ref": SOURCE_SHA,
    "required_sections": ["docs", "reference"],
    "locales": ["en"],
    "allowed_paths": ["content/docs/shelf", "content/reference/shelf"],
    "validation_profile": "local",
    "budgets": {"max_files_changed": 100, "max_lines_per_file": 500},
    "allow_inference": False,
}
SECTION_CONTRACT = {
    "sample_size": 3,
    "required_keys": ["title", "weight"],
    "optional_keys": [],
    "key_types": {"title": "string", "weight": "integer"},
    "default_values": {"weight": 10},
}


def build_artifacts(site_sha: str = SOURCE_SHA) -> dict[str, Any]:
    facts = {
        "schema_version": "1.0",
        "product_name": "Shelf.Kit",
        "product_slug": "shelf",
        "repo_url": REPO_URL,
        "repo_sha": SOURCE_SHA,
        "positioning": {"tagline": "Records in one file", "short_description": "Small records."},
        "supported_platforms": ["python"],
        "claims": [
            {key: claim[key] for key in ("claim_id", "claim_text", "claim_kind", "truth_status")}
            for claim in EVIDENCE_CLAIMS
        ],
        "claim_groups": {
            "key_features": [STORES_CLAIM_ID],
            "install_steps": [INSTALLS_CLAIM_ID],
            "quickstart_steps": [],
            "workflow_claims": [],
            "limitations": [],
            "compatibility_notes": [PYTHON_CLAIM_ID],
        },
        "supported_formats": [{"format": "CSV", "status": "implemented", "claim_id": EXPORTS_CLAIM_ID}],
        "workflows": [
            {
                "workflow_tag": "export",
                "title": "Export",
                "claim_ids": [EXPORTS_CLAIM_ID],
                "snippet_tags": [],
            }
        ],
        "api_surface_summary": {"classes": [], "functions": [], "constants": [], "modules": []},
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
        "code": EXAMPLE_CODE,
        "requirements": {"dependencies": ["shelf-kit"]},
        "validation": {"syntax_ok": True, "runnable_ok": "unknown"},
    }
    failed_snippet = {
        **snippet,
        "snippet_id": "sn_burn",
        "tags": ["example"],
        "code": FAILED_CODE,
        "validation": {"syntax_ok": True, "runnable_ok": False},
        "run": {"outcome": "failed", "reason": "It ended with exit code 1: AttributeError: burn", "exit_code": 1},
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
            "sections": {"docs": SECTION_CONTRACT, "reference": SECTION_CONTRACT},
        },
        "product_facts.json": facts,
        "evidence_map.json": {
            "schema_version": "1.0",
            "repo_url": REPO_URL,
            "repo_sha": SOURCE_SHA,
            "claims": EVIDENCE_CLAIMS,
            "contradictions": [],
        },
        "snippet_catalog.json": {"schema_version": "1.0", "snippets": [snippet, failed_snippet]},
        "page_plan.json": {
            "schema_version": "1.0",
            "product_slug": "shelf",
            "launch_tier": "standard",
            "pages": PAGE_PLAN,
        },
        "patch_bundle.json": make_bundle(make_create_patch(path, text) for path, text in PAGE_TEXTS.items()),
    }


@dataclass(frozen=True)
class GateRun:
    """A run whose patches have been applied."""

    job: WorkerJob
    base_commit: str

    def write_file(self, path: str, text: str | bytes) -> None:
        file = self.job.site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def read_file(self, path: str) -> str:
        return (self.job.site / path).read_bytes().decode()

    def edit_file(self, path: str, old: str, new: str) -> None:
        text = self.read_file(path)
        assert old in text
        self.write_file(path, text.replace(old, new))

    async def open_site(self, scratch: Path | None = None) -> LaunchSite:
        return LaunchSite(
            job=self.job,
            profile=load_named_profile("plain"),
            level=self.job.config["validation_profile"],
            scratch=scratch or self.job.root / "work" / "scratch",
            changes=await list_changes(self.job.site, self.base_commit, {}),
            programs={"hugo": locate_program("hugo", {})},
        )

    async def judge_gate(self, gate: str, *, strict: bool = False) -> GateVerdict:
        return await run_gate(registry.load_gate(gate), await self.open_site(), strict=strict)

    def run_gate(self, gate: str, *, strict: bool = False) -> GateVerdict:
        return anyio.run(lambda: self.judge_gate(gate, strict=strict))

    def list_issues(self, gate: str) -> list[tuple[str, str, int]]:
        """Return the code, file and line of every issue that a gate reports."""
        issues = self.run_gate(gate).issues
        return [(issue.error_code, issue.path, issue.line) for issue in issues]


def create_gate_run(
    tmp_path: Path,
    *,
    config: Mapping[str, Any] | None = None,
    artifacts: Mapping[str, Any] | None = None,
    site: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> GateRun:
    """Create a launch of Shelf.Kit whose pages are in the worktree."""
    folder = tmp_path / "runs" / launch_world.TEST_RUN_ID / "work"
    for root, files in (("repo", SOURCE_FILES), ("site", {**SITE_FILES, **(site or {})})):
        for name, text in files.items():
            file = folder / root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    base = commit_folder(folder / "site")
    job = launch_world.create_job(
        tmp_path,
        step="validate:1",
        worker="W7",
        config={**RUN_CONFIG, **(config or {})},
        artifacts={**build_artifacts(base), **(artifacts or {})},
        facts={"clone": {"site_sha": base}, "apply": {}},
        settings=settings,
    )
    gate_run = GateRun(job, base)
    claims = (artifacts or {}).get("evidence_map.json", {}).get("claims", EVIDENCE_CLAIMS)
    for path, text in PAGE_TEXTS.items():
        gate_run.write_file(path, list_evidence(text, claims))
    return gate_run


def commit_folder(folder: Path) -> str:
    """Commit all files of a folder; the same files give the same commit."""
    identity_options = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    env = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000", "PATH": "/usr/bin:/bin"}
    for words in (["init", "-q"], ["add", "-A"], [*identity_options, "commit", "-qm", "site"]):
        subprocess.run(["git", *words], cwd=folder, check=True, env={**env, "HOME": str(folder)})
    completed = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True)
    return completed.stdout.decode().strip()
