"""Which function of the repository a call goes to, as far as names, files and imports tell.

Nearest first: what is nested in the caller, its own file or class, what its file imports, then the
only one of that name in the repository. Two that fit equally well are none: a wrong answer here
invents flows. Languages are kept apart, except where they call each other as their own.
"""

import posixpath
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from cleats.toolsets.code.risk.book import SELVES, receiver_of
from cleats.toolsets.code.risk.patterns import canonical

_FAMILIES = {"typescript": "javascript", "tsx": "javascript", "cpp": "c", "kotlin": "java"}
_IMPLICIT = frozenset({"java", "csharp", "swift", "c", "ruby"})
"""Families in which a plain call may be to a method of the same class."""
_EXPLICIT = frozenset({"python", "javascript"})
"""Families in which a plain name is of this file, or imported, or not ours."""
_CONSTRUCTORS = ("__init__", "constructor", "__construct", "initialize", "init", "new")
MOST = 32
"""Functions of one name among which one is looked for; more is a name that says nothing."""
_SHORTEST = 4
"""A method of an unknown object is recognised by its name alone, unless that says nothing."""


class Function(NamedTuple):
    """A function, by what calls of it say."""

    path: str
    name: str
    lang: str
    imports: Sequence[str]
    params: Sequence[str]
    is_target: bool = True
    """Its body is known and can be called."""

    @property
    def scope(self) -> str:
        return self.name.rpartition(".")[0]


class Directory:
    """All functions of a repository, to be asked where a call goes."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions
        self._exact: dict[tuple[str, str], list[int]] = {}
        self._named: dict[tuple[str, str], list[int]] = {}
        self._owned: dict[tuple[str, str, str], list[int]] = {}
        """By family, name, and the class or the module they are in."""
        self._made: dict[tuple[str, str], list[int]] = {}
        self._imported: dict[tuple[str, tuple[str, ...]], _Imports] = {}
        for number, function in enumerate(functions):
            if function.is_target:
                self._enter(number, function)

    def _enter(self, number: int, function: Function) -> None:
        family = _family(function.lang)
        scope, _, last = function.name.rpartition(".")
        owner = scope.rpartition(".")[2]
        self._exact.setdefault((function.path, function.name), []).append(number)
        self._named.setdefault((family, last), []).append(number)
        owners = (_plain_name(owner),) if owner else _module_names(function.path)
        for name in dict.fromkeys(owners):
            self._owned.setdefault((family, last, name), []).append(number)
        if owner and last in (owner, *_CONSTRUCTORS):
            self._made.setdefault((family, owner), []).append(number)

    def find(self, caller: int, callee: str, count: int) -> int | None:
        """The function that a call with this many arguments goes to; None when it is not sure."""
        function = self._functions[caller]
        family = _family(function.lang)
        receiver, last = _apart(callee)
        found = self._named.get((family, last))
        if callee.startswith("new ") or found is None:
            return self._nearest(function, self._made.get((family, last), ()))
        if not receiver:
            return self._plain(function, family, last, found)
        if receiver in SELVES:
            own = self._exact.get((function.path, f"{function.scope}.{last}"))
            return _only(own) if own else self._nearest(function, self._methods(found))
        return self._of(function, family, receiver, last, count)

    def _plain(
        self, function: Function, family: str, last: str, found: Sequence[int]
    ) -> int | None:
        scope = function.name
        while scope:
            inner = self._exact.get((function.path, f"{scope}.{last}"))
            # A class around a method is no scope for plain names, unless the language says so.
            if inner and (family in _IMPLICIT or (function.path, scope) in self._exact):
                return _only(inner)
            scope = scope.rpartition(".")[0]
        here = self._exact.get((function.path, last))
        if here:
            return _only(here)
        free = [number for number in found[:MOST] if not self._functions[number].scope]
        if len(found) > MOST:
            return None
        if family in _EXPLICIT:
            return self._nearest(function, free, known_only=True)
        folder = posixpath.dirname(function.path)
        near = [n for n in free if posixpath.dirname(self._functions[n].path) == folder]
        return self._nearest(function, near or free)

    def _of(
        self, function: Function, family: str, receiver: str, last: str, count: int
    ) -> int | None:
        owner = receiver.rpartition(".")[2].removesuffix("()").removesuffix("[]")
        plain = _plain_name(owner)
        owned = self._owned.get((family, last, plain))
        if owned:
            return self._nearest(function, self._methods(owned) or owned)
        found = self._named[family, last]
        if family in _EXPLICIT and "." not in receiver and len(found) <= MOST:
            free = [n for n in found if not self._functions[n].scope]
            short = [n for n in free if _is_short(plain, self._functions[n].path)]
            known = self._known(function, short)
            if known:
                return _only(known)
        only = _only(found)
        if only is None or not self._functions[only].scope:
            return None
        fits = count <= len(self._functions[only].params) and len(last) >= _SHORTEST
        return only if fits else None

    def _methods(self, found: Sequence[int]) -> list[int]:
        return [n for n in found[: MOST + 1] if self._functions[n].scope]

    def _nearest(
        self, function: Function, found: Sequence[int], *, known_only: bool = False
    ) -> int | None:
        """The one in the same file, else the one imported, else the only one."""
        if not found or len(found) > MOST:
            return None
        here = [number for number in found if self._functions[number].path == function.path]
        if here:
            return _only(here)
        if len(found) == 1 and not known_only:
            return found[0]
        return _only(self._known(function, found))

    def _known(self, function: Function, found: Sequence[int]) -> list[int]:
        """Those that the file of a function imports, else those in packages that it imports."""
        if not found:
            return []
        key = (posixpath.dirname(function.path), tuple(function.imports))
        imports = self._imported.get(key)
        if imports is None:
            imports = self._imported[key] = _Imports(*key)
        known = [number for number in found if imports.have(self._functions[number].path)]
        return known or [n for n in found if imports.hold(self._functions[n].path)]


def own_name(callee: str) -> str:
    """The name by which the function of a call is found."""
    return _apart(callee)[1]


@lru_cache(maxsize=1 << 16)  # the same are called again and again
def _apart(callee: str) -> tuple[str, str]:
    """What a function is called on, and its own name."""
    plain = canonical(callee.removeprefix("new "))
    receiver = receiver_of(plain)
    return receiver, plain[len(receiver) :].lstrip(".")


class _Imports:
    """What a file imports, as ends of paths without extension."""

    def __init__(self, folder: str, imports: Iterable[str]) -> None:
        self._whole: set[str] = set()
        self._ends: set[str] = set()
        for name in imports:
            if name.startswith("."):
                self._whole.update(_relative(folder, name))
                continue
            path = name.replace("::", "/").replace("\\", "/")
            path = path if "/" in path else path.replace(".", "/")
            path = path.removesuffix("/*").strip("/")
            self._ends.add(path)
            # `from a.b import c`, `import a.b.C`: the last part may be a thing in the module.
            self._ends.add(posixpath.dirname(path))
        self._ends.discard("")

    def have(self, path: str) -> bool:
        """Whether the file itself is imported, or the package it stands for."""
        return any(self._match(name) for name in _modules(path))

    def hold(self, path: str) -> bool:
        """Whether the file is in a package that is imported."""
        folder = posixpath.dirname(path)
        return bool(folder) and self._match(folder)

    def _match(self, module: str) -> bool:
        if module in self._whole:
            return True
        # Every end of the path that starts at a folder; roots of sources are not known.
        parts = module.split("/")
        return any("/".join(parts[start:]) in self._ends for start in range(len(parts)))


def _relative(folder: str, name: str) -> list[str]:
    if "/" in name or name in (".", ".."):
        path = posixpath.normpath(posixpath.join(folder, name))
        return [path, posixpath.splitext(path)[0]]
    # Python: each dot after the first is a folder up.
    rest = name.lstrip(".")
    up = [".."] * (len(name) - len(rest) - 1)
    path = posixpath.normpath(posixpath.join(folder, *up, rest.replace(".", "/")))
    return [path, posixpath.dirname(path)] if rest else [path]


def _modules(path: str) -> list[str]:
    """What a file may be imported as."""
    stem = posixpath.splitext(path)[0]
    folder, name = posixpath.split(stem)
    if name in ("__init__", "index", "mod", "lib", "main") and folder:
        return [stem, folder]
    return [stem]


@lru_cache(maxsize=1)  # functions come file by file
def _module_names(path: str) -> tuple[str, str]:
    folder, name = posixpath.split(posixpath.splitext(path)[0])
    return _plain_name(name), _plain_name(posixpath.basename(folder))


@lru_cache(maxsize=4096)
def _plain_name(name: str) -> str:
    """A class, a file and a variable called after it, alike: `UserStore`, `user_store`."""
    return name.replace("_", "").replace("-", "").lower()


def _is_short(name: str, path: str) -> bool:
    """Whether a name may stand for the module of a file: `svc` for `services/user_service`."""
    for module in _module_names(path):
        letters = iter(module)
        if name and module.startswith(name[0]) and all(letter in letters for letter in name):
            return True
    return False


def _family(lang: str) -> str:
    return _FAMILIES.get(lang, lang)


def _only(found: Sequence[int]) -> int | None:
    return found[0] if len(found) == 1 else None


def parameter(params: Sequence[str], position: int, keyword: str) -> int | None:
    """The parameter that an argument becomes; the object of a method is none of them."""
    names = [name.lstrip("*&.$") for name in params]
    if keyword:
        if keyword in names:
            return names.index(keyword)
        # An element gives its attributes, by name, to a component that takes them as one object.
        alone = 0 if len(params) == 1 else None
        return next((n for n, name in enumerate(params) if name.startswith("**")), alone)
    if position < 0:
        return None
    place = position + (1 if names and names[0] in SELVES else 0)
    if place < len(params):
        return place
    spread = [n for n, name in enumerate(params) if name.startswith(("*", "..."))]
    return spread[0] if spread else None
