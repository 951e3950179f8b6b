"""The manifest of Go modules."""

from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import ManifestFile, PackageManifest


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
    )
