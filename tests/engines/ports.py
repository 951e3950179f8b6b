"""Free ports of this machine."""

import socket
from contextlib import ExitStack


def find_free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]
