"""Storage of shared bytes: a folder that all machines mount, or an object store.

Keys are paths with `/`. An object appears completely or not at all. Nothing is listed: readers know
every key from a manifest.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.installation import format_install_command
from cleats.settings import SettingError
from cleats.system.atomic_files import sync_path

if TYPE_CHECKING:
    from obstore.store import ObjectStore


MAX_CONCURRENT_PARTS: Final = 2
"""Parts of 5 MiB that an object is sent in at once. Each has 30 s: with more of them, all fail on a slow link."""


class Storage(Protocol):
    """A key-value store of bytes. Every method may raise `OSError` if it cannot be reached."""

    def has(self, key: str) -> bool: ...

    def get(self, key: str) -> bytes | None:
        """Return a small object, or None if it does not exist."""

    def fetch(self, key: str, target: Path) -> bool:
        """Copy an object into a new file; return False if it does not exist."""

    def put(self, key: str, source: Path | bytes) -> None:
        """Store a file or a few bytes, replacing an existing object."""

    def remove(self, key: str) -> None:
        """Remove an object if it exists."""


class FolderStorage:
    """A folder of this machine or of the network."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def has(self, key: str) -> bool:
        return (self._root / key).is_file()

    def get(self, key: str) -> bytes | None:
        try:
            return (self._root / key).read_bytes()
        except FileNotFoundError:
            return None

    def fetch(self, key: str, target: Path) -> bool:
        try:
            shutil.copyfile(self._root / key, target)
        except FileNotFoundError:
            return False
        return True

    def put(self, key: str, source: Path | bytes) -> None:
        target = self._root / key
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary_path = target.with_name(f".{token_hex(8)}.part")
        try:
            if isinstance(source, bytes):
                temporary_path.write_bytes(source)
            else:
                shutil.copyfile(source, temporary_path)
            sync_path(temporary_path)
            temporary_path.replace(target)
            sync_path(target.parent)
        finally:
            temporary_path.unlink(missing_ok=True)

    def remove(self, key: str) -> None:
        (self._root / key).unlink(missing_ok=True)


class ObjectStorage:
    """An object store, through `obstore`."""

    def __init__(self, store: "ObjectStore") -> None:
        self._store = store

    def has(self, key: str) -> bool:
        with _use_obstore(missing_ok=True) as obstore:
            obstore.head(self._store, key)
            return True
        return False

    def get(self, key: str) -> bytes | None:
        with _use_obstore(missing_ok=True) as obstore:
            return bytes(obstore.get(self._store, key).bytes())
        return None

    def fetch(self, key: str, target: Path) -> bool:
        with _use_obstore() as obstore:
            try:
                response = obstore.get(self._store, key)
            except FileNotFoundError:
                return False
            with target.open("wb") as file:
                for block in response.stream(min_chunk_size=1 << 20):
                    file.write(block)
        return True

    def put(self, key: str, source: Path | bytes) -> None:
        with _use_obstore() as obstore:
            obstore.put(self._store, key, source, max_concurrency=MAX_CONCURRENT_PARTS)

    def remove(self, key: str) -> None:
        with _use_obstore(missing_ok=True) as obstore:
            obstore.delete(self._store, key)


@contextmanager
def _use_obstore(*, missing_ok: bool = False) -> Iterator[Any]:
    """Yield the library; with `missing_ok`, a missing object only ends the block."""
    import obstore  # noqa: PLC0415 - an extra
    from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

    try:
        yield obstore
    except (BaseError, FileNotFoundError) as error:
        if missing_ok and isinstance(error, FileNotFoundError):
            return
        if not isinstance(error, BaseError):
            raise
        # The library's text has the address and, from some stores, parts of the request.
        raise OSError(f"the object store failed ({type(error).__name__})") from None


def open_storage(url: str, access: "dict[str, Any]") -> Storage:
    """Open the storage at a URL or a folder.

    Raises:
        SettingError: The URL is not a usable address.
        ToolError: CAPABILITY_MISSING, `obstore` is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme in ("", "file"):
        path = Path(unquote(parts.path) if parts.scheme else url).expanduser()
        if not path.is_absolute():
            raise SettingError(f"index_url: expected the absolute path of a folder, not {url!r}")
        return FolderStorage(path)
    if parts.scheme != "s3":
        raise SettingError(f"index_url: expected a folder or s3://…, not {parts.scheme}://…")
    try:
        from obstore.store import S3Store  # noqa: PLC0415 - an extra
    except ImportError:
        hint = f"Install it: {format_install_command('cleats[fleet]')}"
        raise ToolError(ErrorCode.CAPABILITY_MISSING, "An object store needs the package obstore.", hint=hint) from None
    prefix = parts.path.strip("/") or None
    return ObjectStorage(S3Store(parts.netloc, prefix=prefix, **access))
