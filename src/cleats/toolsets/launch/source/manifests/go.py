"""The manifest of Go modules."""

import re

from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest


def read_go(tree: CheckoutTree, path: str = "go.mod") -> PackageManifest | None:
    """Read the module of a `go.mod`; it has no version, since Go versions are release tags."""
    file = ManifestFile.load(tree, path)
    name = file.find(r"^module\s+(\S+)")
    if name is None:
        return None
    required = file.find_all(r"^(?:require)?\s+([\w.-]+\.[\w./-]+)\s+v\S+(?!\S|\s*// indirect)", line_group=1)
    code = [
        tree.read_text(item) or "" for item in tree.paths if item.endswith(".go") and classify_path(item) == "source"
    ]
    return PackageManifest(
        ecosystem="go",
        path=path,
        name=name,
        requires=file.find(r"^go\s+([\d.]+)", prefix=">=", line_pattern=r"^go\s"),
        # A `go.mod` names the modules of tests, too.
        dependencies=tuple(item for item in required if any(f'"{item.value}' in text for text in code)),
        imports=(name,),
        description=_find_package_doc(tree, path.removesuffix("go.mod")),
    )


def _find_package_doc(tree: CheckoutTree, folder: str) -> LocatedValue | None:
    """Return what the documentation of the package at the top of the module says that it is or does."""
    for path in sorted(path for path in tree.paths_below(folder.rstrip("/")) if path.endswith(".go")):
        is_top = path.count("/") == folder.count("/") and classify_path(path) == "source"
        text = (tree.read_text(path) or "") if is_top else ""
        start = re.search(r"^(?:/\*\s*|// )Package \w+ ", text, re.MULTILINE)
        if start:
            lines = re.sub(r"^// ?", "", text[start.end() :], flags=re.MULTILINE)
            sentence = re.split(r"\.\s|\n\s*\n|\*/|^package ", lines, maxsplit=1, flags=re.MULTILINE)[0]
            words = " ".join(sentence.split()).rstrip(".").removeprefix("is ")
            return LocatedValue(words, path, text.count("\n", 0, start.end()) + 1, basis="api_doc")
    return None
