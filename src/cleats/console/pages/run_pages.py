"""What a run wrote: its pages beside their source and evidence, its change of the site, and its artifacts."""

import base64
import io
import zipfile
from collections.abc import Sequence
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cleats.console.caller_console import CallerConsole
from cleats.console.highlighting import highlight_lines
from cleats.console.page_preview import build_source_url, preview_page, render_markdown
from cleats.console.pages.runs import describe_run, read_json_artifact, read_text_artifact
from cleats.console.rendering import PAGE_HEADERS

MAX_SHOWN_CHARS: Final = 400_000
"""The length at which an artifact is cut for the page; the download has all of it."""

MAX_UNPACKED_BYTES: Final = 4_000_000
"""The size of a file that is unpacked for the page."""

CHANGES_ARTIFACT: Final = "reports/changes.zip"
PATCH_NAME: Final = "changes.patch"
CHANGED_FILES_FOLDER: Final = "files"
"""The folder of the archive with the changed files of the site."""


def list_pages(names: Sequence[str]) -> list[dict[str, str]]:
    """Return the drafts among artifacts: section, path in the site, and name of the artifact."""
    pages = []
    for name in names:
        folder, _, rest = name.partition("/")
        section, _, path = rest.partition("/")
        if folder == "drafts" and path.endswith(".md"):
            pages.append({"section": section, "path": path, "name": name})
    return pages


async def show_pages(console: CallerConsole, request: Request) -> Response:
    """Show one page of a run beside its evidence or its source."""
    console.require_area("runs")
    values = await describe_run(console, request.path_params["run_id"])
    run_id, names = values["run_id"], values["artifact_names"]
    pages = list_pages(names)
    chosen = request.query_params.get("page") or (pages[0]["name"] if pages else "")
    if chosen and chosen not in {page["name"] for page in pages}:
        raise HTTPException(404)
    values |= {"tab": "pages", "title": "Pages of a run", "pages": pages, "chosen": chosen, "preview": None}
    values["view"] = "source" if request.query_params.get("view") == "source" else "evidence"
    if chosen:
        source = await _read_page(console, run_id, chosen, names)
        evidence = await read_json_artifact(console, run_id, "evidence_map.json", names) or {}
        refs = (await read_json_artifact(console, run_id, "resolved_refs.json", names) or {}).get("repo") or {}
        claims = {claim["claim_id"]: claim for claim in evidence.get("claims") or ()}
        source_url = build_source_url(refs.get("repo_url", ""), refs.get("resolved_sha", ""))
        excerpt_list = await read_json_artifact(console, run_id, "evidence_excerpts.json", names) or {}
        excerpts = {
            (excerpt["path"], excerpt["start_line"], excerpt["end_line"]): excerpt["lines"]
            for excerpt in excerpt_list.get("excerpts") or ()
        }
        values["preview"] = preview_page(source, claims, source_url, excerpts)
        values["source_lines"] = highlight_lines(source.removesuffix("\n"), language="markdown")
        values["commit"] = refs.get("resolved_sha", "")
    return console.render(request, "run_pages.html", values)


async def _read_page(console: CallerConsole, run_id: str, draft: str, names: Sequence[str]) -> str:
    """Return a page as the site gets it, with links, fixes and edits; the draft before the pages were checked."""
    if CHANGES_ARTIFACT in names:
        path = draft.removeprefix("drafts/").partition("/")[2]
        changes = await read_text_artifact(console, run_id, CHANGES_ARTIFACT)
        if page := read_changed_file(changes, f"{CHANGED_FILES_FOLDER}/{path}"):
            return page
    return await read_text_artifact(console, run_id, draft)


async def show_changes(console: CallerConsole, request: Request) -> Response:
    """Show the change of the site as a diff."""
    console.require_area("runs")
    values = await describe_run(console, request.path_params["run_id"])
    run_id, names = values["run_id"], values["artifact_names"]
    patch, is_cut = "", False
    if CHANGES_ARTIFACT in names:
        patch = read_changed_file(await read_text_artifact(console, run_id, CHANGES_ARTIFACT), PATCH_NAME)
        patch, is_cut = patch[:MAX_SHOWN_CHARS], len(patch) > MAX_SHOWN_CHARS
    report = (
        await read_text_artifact(console, run_id, "reports/diff_report.md") if "reports/diff_report.md" in names else ""
    )
    values |= {
        "tab": "changes",
        "title": "Changes of a run",
        "files": split_patch(patch),
        "is_cut": is_cut,
        "report": render_markdown(report) if report else None,
        "has_download": CHANGES_ARTIFACT in names,
    }
    return console.render(request, "run_changes.html", values)


def read_changed_file(encoded: str, name: str) -> str:
    """Return the text of a file in an archive of changes; empty if it has none that can be shown."""
    try:
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(encoded))) as archive, archive.open(name) as file:
            return file.read(MAX_UNPACKED_BYTES).decode(errors="replace")
    except (ValueError, KeyError, zipfile.BadZipFile):
        return ""


def split_patch(patch: str) -> list[dict[str, Any]]:
    """Return the patch of each file with its counts of lines; pages come before the record that a launch keeps."""
    files: list[dict[str, Any]] = []
    for part in patch.split("diff --git ")[1:]:
        header, _, _ = part.partition("\n")
        body = part[part.find("@@") :] if "@@" in part else ""
        lines = body.splitlines()
        files.append(
            {
                "path": header.rpartition(" b/")[2],
                "added": sum(line.startswith("+") for line in lines),
                "removed": sum(line.startswith("-") for line in lines),
                "is_new": "\nnew file mode" in part,
                "lines": highlight_lines(body.removesuffix("\n"), language="diff") if body else [],
            }
        )
    return sorted(files, key=lambda file: file["path"].rpartition("/")[2].startswith("."))


async def list_artifacts(console: CallerConsole, request: Request) -> Response:
    """List the artifacts of a run."""
    console.require_area("runs")
    values = await describe_run(console, request.path_params["run_id"])
    artifacts = [*values["status"]["artifacts"]]
    groups: dict[str, list[Any]] = {}
    for artifact in artifacts:
        group = artifact["name"].partition("/")[0] if "/" in artifact["name"] else "run"
        groups.setdefault(group, []).append(artifact)
    values |= {"tab": "artifacts", "title": "Artifacts of a run", "groups": groups}
    return console.render(request, "run_artifacts.html", values)


async def show_artifact(console: CallerConsole, request: Request) -> Response:
    """Show one artifact, or send it as a file."""
    console.require_area("runs")
    run_id, name = request.path_params["run_id"], request.path_params["name"]
    artifact = (await console.tools.run("launch_get_artifact", run_id=run_id, artifact_name=name))["artifact"]
    is_binary = artifact["content_type"].endswith(";base64")
    if request.query_params.get("download") == "1" or is_binary:
        data = base64.b64decode(artifact["content"]) if is_binary else artifact["content"].encode()
        file_name = "".join(char if char.isalnum() or char in "._-" else "_" for char in name.rpartition("/")[2])
        headers = {**PAGE_HEADERS, "content-disposition": f'attachment; filename="{file_name}"'}
        return Response(data, 200, headers, "application/octet-stream")
    text = artifact["content"]
    values = await describe_run(console, run_id)
    values |= {
        "tab": "artifacts",
        "title": name,
        "name": name,
        "artifact": artifact,
        "lines": highlight_lines(text[:MAX_SHOWN_CHARS].removesuffix("\n"), path=name.rpartition("/")[2]),
        "is_cut": len(text) > MAX_SHOWN_CHARS,
    }
    return console.render(request, "run_artifact.html", values)


ROUTES = (
    ("GET", "/console/runs/{run_id}/pages", show_pages),
    ("GET", "/console/runs/{run_id}/changes", show_changes),
    ("GET", "/console/runs/{run_id}/artifacts", list_artifacts),
    ("GET", "/console/runs/{run_id}/artifacts/{name:path}", show_artifact),
)
