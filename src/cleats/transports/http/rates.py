"""How often a caller may come: a bucket of requests that fills up again as time goes by."""

from collections.abc import Callable
from time import monotonic

from cleats.transports.http.tokens import Token


class Bucket:
    """Room for `burst` requests at once and `per_minute` in the long run."""

    def __init__(
        self, per_minute: float, burst: int | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self._rate = per_minute / 60
        self._most = float(burst if burst is not None else max(1, int(per_minute)))
        self._left = self._most
        self._clock = clock
        self._seen = clock()

    def take(self) -> float:
        """Take the room of one request; else the seconds until there will be some."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._seen) * self._rate)
        self._seen = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate


def bucket(token: Token) -> Bucket | None:
    """The bucket of a caller; None for one that may come as often as it likes."""
    return None if token.per_minute is None else Bucket(token.per_minute, token.burst)
