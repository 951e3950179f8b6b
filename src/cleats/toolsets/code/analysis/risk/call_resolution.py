"""Resolution of calls to functions of the repository, by names, files and imports.

Candidates are tried from near to far: nested in the caller, in its file or class, imported by its
file, then the only function with that name. Two equally good candidates resolve to nothing, because
a wrong answer would invent flows. Languages are kept apart unless they call each other directly.
"""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from cleats.toolsets.code.analysis.risk.name_patterns import canonicalize_name
from cleats.toolsets.code.analysis.risk.rule_lookup import SELF_NAMES, extract_receiver

_FAMILIES_BY_LANGUAGE = {"typescript": "javascript", "tsx": "javascript", "cpp": "c", "kotlin": "java"}
_IMPLICIT_SELF_FAMILIES = frozenset({"java", "csharp", "swift", "c", "ruby"})
"""Families in which a plain call can be to a method of the same class."""
_EXPLICIT_IMPORT_FAMILIES = frozenset({"python", "javascript"})
"""Families in which a plain name is defined in the file, imported, or external."""
_CONSTRUCTOR_NAMES = ("__init__", "constructor", "__construct", "initialize", "init", "new")
MAX_NAMESAKES = 32
"""The most functions of one name among which a target is searched; a more common name says nothing."""
_MIN_METHOD_NAME_CHARS = 4
"""The shortest name by which the method of an unknown object is recognized; shorter ones are too common."""


class Function(NamedTuple):
    """A function with the data by which calls are resolved."""

    path: str
    name: str
    lang: str
    imports: Sequence[str]
    params: Sequence[str]
    is_target: bool = True
    """True if its body is known and can be called."""

    @property
    def scope(self) -> str:
        return self.name.rpartition(".")[0]


class FunctionDirectory:
    """Functions of a repository by key, for the resolution of calls."""

    def __init__(self, functions: Mapping[int, Function]) -> None:
        self._functions = functions
        self._by_path: dict[tuple[str, str], list[int]] = {}
        self._by_name: dict[tuple[str, str], list[int]] = {}
        self._by_owner: dict[tuple[str, str, str], list[int]] = {}
        """Functions by family, name, and enclosing class or module."""
        self._constructors: dict[tuple[str, str], list[int]] = {}
        self._imports_cache: dict[tuple[str, tuple[str, ...]], _FileImports] = {}
        for key, function in functions.items():
            if function.is_target:
                self._add_function(key, function)

    def _add_function(self, key: int, function: Function) -> None:
        family = _language_family(function.lang)
        scope, _, last_name = function.name.rpartition(".")
        owner = scope.rpartition(".")[2]
        self._by_path.setdefault((function.path, function.name), []).append(key)
        self._by_name.setdefault((family, last_name), []).append(key)
        owners = (_normalize_name(owner),) if owner else _module_names(function.path)
        for name in dict.fromkeys(owners):
            self._by_owner.setdefault((family, last_name, name), []).append(key)
        if owner and last_name in (owner, *_CONSTRUCTOR_NAMES):
            self._constructors.setdefault((family, owner), []).append(key)

    def find(self, caller: int, callee: str, argument_count: int) -> int | None:
        """Return the key of the function that a call goes to, or None if that is uncertain."""
        function = self._functions[caller]
        family = _language_family(function.lang)
        receiver, last_name = split_callee(callee)
        namesakes = self._by_name.get((family, last_name))
        if callee.startswith("new ") or namesakes is None:
            return self._find_nearest(function, self._constructors.get((family, last_name), ()))
        if not receiver:
            return self._find_plain(function, family, last_name, namesakes)
        if receiver in SELF_NAMES:
            own_methods = self._by_path.get((function.path, f"{function.scope}.{last_name}"))
            if own_methods:
                return _single_or_none(own_methods)
            return self._find_nearest(function, self._filter_methods(namesakes))
        return self._find_method(function, family, receiver, last_name, argument_count)

    def _find_plain(self, function: Function, family: str, last_name: str, namesakes: Sequence[int]) -> int | None:
        scope = function.name
        while scope:
            inner = self._by_path.get((function.path, f"{scope}.{last_name}"))
            # An enclosing class is no scope for plain names, except in some languages.
            if inner and (family in _IMPLICIT_SELF_FAMILIES or (function.path, scope) in self._by_path):
                return _single_or_none(inner)
            scope = scope.rpartition(".")[0]
        in_file = self._by_path.get((function.path, last_name))
        if in_file:
            return _single_or_none(in_file)
        if len(namesakes) > MAX_NAMESAKES:
            return None
        module_level = [key for key in namesakes if not self._functions[key].scope]
        if family in _EXPLICIT_IMPORT_FAMILIES:
            return self._find_nearest(function, module_level, imported_only=True)
        folder = posixpath.dirname(function.path)
        in_folder = [key for key in module_level if posixpath.dirname(self._functions[key].path) == folder]
        return self._find_nearest(function, in_folder or module_level)

    def _find_method(
        self, function: Function, family: str, receiver: str, last_name: str, argument_count: int
    ) -> int | None:
        plain_owner = _normalize_name(receiver.rpartition(".")[2].removesuffix("()").removesuffix("[]"))
        owned = self._by_owner.get((family, last_name, plain_owner))
        if owned:
            return self._find_nearest(function, self._filter_methods(owned) or owned)
        namesakes = self._by_name[family, last_name]
        if family in _EXPLICIT_IMPORT_FAMILIES and "." not in receiver and len(namesakes) <= MAX_NAMESAKES:
            abbreviated = [
                key
                for key in namesakes
                if not self._functions[key].scope and _is_abbreviation(plain_owner, self._functions[key].path)
            ]
            if imported := self._filter_imported(function, abbreviated):
                return _single_or_none(imported)
        only = _single_or_none(namesakes)
        if only is None or not self._functions[only].scope:
            return None
        fits = argument_count <= len(self._functions[only].params) and len(last_name) >= _MIN_METHOD_NAME_CHARS
        return only if fits else None

    def _filter_methods(self, keys: Sequence[int]) -> list[int]:
        return [key for key in keys[: MAX_NAMESAKES + 1] if self._functions[key].scope]

    def _find_nearest(self, function: Function, keys: Sequence[int], *, imported_only: bool = False) -> int | None:
        """Return the function in the same file, else the imported one, else the only one."""
        if not keys or len(keys) > MAX_NAMESAKES:
            return None
        in_file = [key for key in keys if self._functions[key].path == function.path]
        if in_file:
            return _single_or_none(in_file)
        if len(keys) == 1 and not imported_only:
            return keys[0]
        return _single_or_none(self._filter_imported(function, keys))

    def _filter_imported(self, function: Function, keys: Sequence[int]) -> list[int]:
        """Return the functions in imported files, or else those in imported packages."""
        if not keys:
            return []
        cache_key = (posixpath.dirname(function.path), tuple(function.imports))
        imports = self._imports_cache.get(cache_key)
        if imports is None:
            imports = self._imports_cache[cache_key] = _FileImports(*cache_key)
        paths = {key: self._functions[key].path for key in keys}
        imported_files = [key for key in keys if any(map(imports.includes, _list_module_paths(paths[key])))]
        return imported_files or [key for key in keys if imports.includes(posixpath.dirname(paths[key]))]


@lru_cache(maxsize=1 << 16)  # the same are called again and again
def split_callee(callee: str) -> tuple[str, str]:
    """Return the receiver of a call, and the name by which its target is looked up."""
    canonical_callee = canonicalize_name(callee.removeprefix("new "))
    receiver = extract_receiver(canonical_callee)
    return receiver, canonical_callee[len(receiver) :].lstrip(".")


class _FileImports:
    """The imports of a file, as suffixes of paths without extension."""

    def __init__(self, folder: str, imports: Iterable[str]) -> None:
        self._paths: set[str] = set()
        self._path_suffixes: set[str] = set()
        for name in imports:
            if name.startswith("."):
                self._paths.update(_resolve_relative_import(folder, name))
                continue
            path = name.replace("::", "/").replace("\\", "/")
            path = path if "/" in path else path.replace(".", "/")
            path = path.removesuffix("/*").strip("/")
            self._path_suffixes.add(path)
            # `from a.b import c`, `import a.b.C`: the last part can be a name in the module.
            self._path_suffixes.add(posixpath.dirname(path))
        self._path_suffixes.discard("")

    def includes(self, module: str) -> bool:
        """Return True if a file, given without extension, or a folder is imported."""
        if not module or module in self._paths:
            return bool(module)
        # Try every suffix of the path that starts at a folder; source roots are unknown.
        parts = module.split("/")
        return any("/".join(parts[start:]) in self._path_suffixes for start in range(len(parts)))


def _resolve_relative_import(folder: str, name: str) -> list[str]:
    if "/" in name or name in (".", ".."):
        path = posixpath.normpath(posixpath.join(folder, name))
        return [path, posixpath.splitext(path)[0]]
    # Python: each dot after the first is a folder up.
    rest = name.lstrip(".")
    up = [".."] * (len(name) - len(rest) - 1)
    path = posixpath.normpath(posixpath.join(folder, *up, rest.replace(".", "/")))
    return [path, posixpath.dirname(path)] if rest else [path]


def _list_module_paths(path: str) -> list[str]:
    stem = posixpath.splitext(path)[0]
    folder, name = posixpath.split(stem)
    if name in ("__init__", "index", "mod", "lib", "main") and folder:
        return [stem, folder]
    return [stem]


@lru_cache(maxsize=1)  # functions come file by file
def _module_names(path: str) -> tuple[str, str]:
    folder, name = posixpath.split(posixpath.splitext(path)[0])
    return _normalize_name(name), _normalize_name(posixpath.basename(folder))


@lru_cache(maxsize=4096)
def _normalize_name(name: str) -> str:
    """Normalize the name of a class, file or variable, so that `UserStore` equals `user_store`."""
    return name.replace("_", "").replace("-", "").lower()


def _is_abbreviation(name: str, path: str) -> bool:
    """Return True if a name can abbreviate the module of a file: `svc` for `user_service`."""
    for module in _module_names(path):
        letters = iter(module)
        if name and module.startswith(name[0]) and all(letter in letters for letter in name):
            return True
    return False


def _language_family(lang: str) -> str:
    return _FAMILIES_BY_LANGUAGE.get(lang, lang)


def _single_or_none(keys: Sequence[int]) -> int | None:
    return keys[0] if len(keys) == 1 else None


def find_parameter(params: Sequence[str], position: int, keyword: str) -> int | None:
    """Return the parameter that receives an argument; the receiver of a method is not counted."""
    names = [name.lstrip("*&.$") for name in params]
    if keyword:
        if keyword in names:
            return names.index(keyword)
        # A JSX element passes its attributes by name to a component that takes one object.
        single_param = 0 if len(params) == 1 else None
        return next((param_index for param_index, name in enumerate(params) if name.startswith("**")), single_param)
    if position < 0:
        return None
    param_position = position + (1 if names and names[0] in SELF_NAMES else 0)
    if param_position < len(params):
        return param_position
    variadic_params = [param_index for param_index, name in enumerate(params) if name.startswith(("*", "..."))]
    return variadic_params[0] if variadic_params else None
