"""Who is here: one session a visitor, until half an hour passes without a request."""

import time
from dataclasses import dataclass, field

from shop.cart import Cart

LIFETIME = 30 * 60


@dataclass
class Session:
    """A visitor and their cart."""

    id: str
    seen: float = field(default_factory=time.monotonic)
    cart: Cart = field(default_factory=Cart)

    @property
    def expired(self) -> bool:
        return time.monotonic() - self.seen > LIFETIME


class Sessions:
    """Every open session."""

    def __init__(self) -> None:
        self._open: dict[str, Session] = {}

    def visit(self, session_id: str) -> Session:
        """The session of a visitor, new if they have none."""
        session = self._open.setdefault(session_id, Session(session_id))
        session.seen = time.monotonic()
        return session

    def close_expired(self) -> int:
        """Forget the visitors who left; a job calls this every minute."""
        gone = [session.id for session in self._open.values() if session.expired]
        for session_id in gone:
            del self._open[session_id]
        return len(gone)
