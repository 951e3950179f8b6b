"""The style sheets and scripts of the pages, under addresses that change with their content."""

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

STATIC_PATH: Final = "/console/static"

MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

STATIC_FOLDER: Final = Path(__file__).with_name("static")


@cache
def load_static_files() -> dict[str, bytes]:
    """Return every file by name; they are few and small."""
    return {path.name: path.read_bytes() for path in sorted(STATIC_FOLDER.iterdir()) if path.suffix in MEDIA_TYPES}


@cache
def get_static_version() -> str:
    """Return a short hash of all files, which is part of their addresses: scripts import one another."""
    digest = sha256()
    for name, data in load_static_files().items():
        digest.update(name.encode() + b"\0" + data)
    return digest.hexdigest()[:12]


def get_static_url(name: str) -> str:
    """Return the address of a file."""
    if name not in load_static_files():
        raise KeyError(name)
    return f"{STATIC_PATH}/{get_static_version()}/{name}"


async def serve_static_file(request: Request) -> Response:
    """Serve a file; browsers may keep it for good."""
    name = request.path_params["name"]
    data = load_static_files().get(name)
    if data is None:
        return Response("There is no such file.", 404, media_type="text/plain")
    is_current = request.path_params["version"] == get_static_version()
    lifetime = "public, max-age=31536000, immutable" if is_current else "no-cache"
    headers = {"cache-control": lifetime, "cross-origin-resource-policy": "same-origin"}
    return Response(data, 200, headers, MEDIA_TYPES[Path(name).suffix])
