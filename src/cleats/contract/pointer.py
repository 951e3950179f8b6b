"""JSON Pointers (RFC 6901), the notation of every path in an answer."""

from collections.abc import Iterable


def join_pointer(parts: Iterable[str | int]) -> str:
    """Join reference tokens: `("a/b", 0)` becomes `/a~1b/0`, no tokens the empty string."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def split_pointer(text: str) -> list[str]:
    """Split a pointer into its reference tokens; the inverse of `join_pointer` for string tokens.

    Raises:
        ValueError: The text is not a JSON Pointer.
    """
    if not text:
        return []
    if not text.startswith("/"):
        raise ValueError(f"a JSON Pointer starts with '/': {text!r}")
    # Order matters: "~01" is "~1", not "/".
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]
