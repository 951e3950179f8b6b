"""Files that survive a power cut, and copies that cost little."""

import os
import shutil
from pathlib import Path


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk itself."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot, and writes names through
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Put a folder on the disk with everything in it, names last.

    A file that another folder has too, by `link`, is there already.
    """
    for current, _, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(current, name)
            if path.stat().st_nlink == 1:
                sync(path)
        sync(Path(current))


def replace_text(path: Path, text: str) -> None:
    """Give a small file another content, all at once and for good."""
    aside = path.with_name(f".{path.name}-{os.getpid()}")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync(path.parent)


def clone(source: Path, target: Path) -> None:
    """Copy a file; a file system that can share the blocks until one side writes, does."""
    if hasattr(os, "copy_file_range"):
        with source.open("rb") as origin, target.open("wb") as copy:
            try:
                while os.copy_file_range(origin.fileno(), copy.fileno(), 1 << 30):
                    pass
            except OSError as error:
                if copy.tell() or error.errno == 28:  # a full disk is no reason to try again
                    raise
            else:
                return
    shutil.copyfile(source, target)


def link(source: Path, target: Path) -> None:
    """Give a file that nobody changes a second name."""
    try:
        target.hardlink_to(source)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def size(folder: Path) -> int:
    """Bytes of the files below a folder."""
    return sum(
        (Path(current) / name).lstat().st_size
        for current, _, files in os.walk(folder)
        for name in files
    )
