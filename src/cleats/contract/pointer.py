"""JSON Pointers (RFC 6901): how every path in an answer is written."""

from collections.abc import Iterable


def pointer(parts: Iterable[str | int]) -> str:
    """Join reference tokens: `("a/b", 0)` is `/a~1b/0`, nothing is the empty string."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def tokens(text: str) -> list[str]:
    """Split a pointer into its reference tokens; the inverse of `pointer` for string tokens.

    Raises:
        ValueError: the text is no JSON Pointer.
    """
    if not text:
        return []
    if not text.startswith("/"):
        raise ValueError(f"a JSON Pointer starts with '/': {text!r}")
    # Order matters: "~01" is "~1", not "/".
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]
