"""Run MkDocs in a fence: a program of its own, started with `python -I -B`, that imports nothing of Cleats.

Arguments: the folder of the site, the folder that may be written, then the arguments of MkDocs. The configuration has
been checked before, so no code of the site runs here. The fence is the second line: an audit hook, which cannot be
removed, refuses programs, the network, and files outside the two folders and the installation; limits on CPU time,
memory and file size keep a page from exhausting the machine.
"""

import os
import sys
import sysconfig

MAX_CPU_SECONDS = 300
MAX_MEMORY_BYTES = 4 << 30
MAX_FILE_BYTES = 256 << 20
"""Far above what a large site needs: MkDocs builds a thousand pages in 20 seconds with 200 MB."""

PROGRAM_EVENTS = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.forkpty", "os.startfile"}
    | {"pty.spawn", "ctypes.dlopen"}
)
NETWORK_EVENTS = frozenset(
    {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"}
    | {"socket.gethostbyname", "socket.gethostbyaddr", "urllib.Request"}
)
CHANGE_EVENTS = frozenset(
    {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate"}
    | {"os.utime"}
)
LOOPBACK_HOST = "127.0.0.1"


def limit_resources(*, is_server: bool) -> None:
    """Limit what this process can use; Windows has no such limits."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return
    limits = {resource.RLIMIT_FSIZE: MAX_FILE_BYTES, resource.RLIMIT_CORE: 0}
    if not is_server:
        limits |= {resource.RLIMIT_CPU: MAX_CPU_SECONDS, resource.RLIMIT_AS: MAX_MEMORY_BYTES}
    for name, value in limits.items():
        hard = resource.getrlimit(name)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (limit, limit))


def install_fence(site: str, scratch: str) -> None:
    """Refuse every event that a build does not need. A hook of this kind cannot be removed."""
    installation = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *filter(None, sys.path)}
    writable = _resolve_folders([scratch])
    readable = writable + _resolve_folders([site, *installation])
    write_flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def refuse(event: str, args: tuple[object, ...]) -> None:
        if event in PROGRAM_EVENTS or event in NETWORK_EVENTS:
            raise PermissionError(f"not allowed in a build: {event}")
        if event == "socket.bind" and not (isinstance(args[1], tuple) and args[1][0] == LOOPBACK_HOST):
            raise PermissionError("not allowed in a build: a server that others can reach")
        if event == "open":
            is_write = isinstance(args[2], int) and bool(args[2] & write_flags)
            check_path(args[0], writable if is_write else readable)
        elif event in CHANGE_EVENTS:
            for path in args[:2] if event in ("os.rename", "os.link", "os.symlink") else args[:1]:
                check_path(path, writable)

    def check_path(path: object, folders: tuple[str, ...]) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return  # a file that is open already
        full_path = os.path.realpath(os.fsdecode(path))
        if full_path != os.devnull and not (full_path + os.sep).startswith(folders):
            raise PermissionError(f"not allowed in a build: {os.fsdecode(path)}")

    sys.addaudithook(refuse)


def _resolve_folders(folders: list[str]) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder).rstrip(os.sep) + os.sep for folder in folders)


def main() -> None:
    """Run MkDocs."""
    site, scratch, *arguments = sys.argv[1:]
    import mimetypes  # noqa: PLC0415

    import mkdocs.commands.build  # noqa: PLC0415 - all modules are loaded before the fence
    import mkdocs.commands.serve  # noqa: PLC0415
    import mkdocs.contrib.search  # noqa: PLC0415
    import mkdocs.livereload  # noqa: F401, PLC0415
    from mkdocs.__main__ import cli  # noqa: PLC0415

    mimetypes.init()  # reads files of the system
    limit_resources(is_server=arguments[:1] == ["serve"])
    install_fence(site, scratch)
    sys.argv = ["mkdocs", *arguments]
    cli()


if __name__ == "__main__":
    main()
