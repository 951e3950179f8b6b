"""The manifest of Rust crates."""

from cleats.toolsets.launch.source.checkout.safe_parsing import as_mapping, as_mappings, as_text
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests import model
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest


def read_cargo(tree: CheckoutTree, path: str = "Cargo.toml") -> PackageManifest | None:
    """Read the crate; values inherited from the workspace are looked up there."""
    file = ManifestFile.load(tree, path)
    package = file.find_table("package")
    name = file.read_text("package", "name")
    if name is None:
        return None
    inherited = {key for key, value in package.items() if isinstance(value, dict) and value.get("workspace")}
    version, licence, description, rust = (
        file.read_text(*(("workspace", "package") if key in inherited else ("package",)), key)
        for key in ("version", "license", "description", "rust-version")
    )
    library = file.find_table("lib").get("name")
    import_name = str(library or package["name"]).replace("-", "_")
    dependencies = file.find_table("dependencies")
    folder = path.removesuffix("Cargo.toml")
    entry_file = folder + (as_text(file.find_table("lib").get("path")) or "src/lib.rs").removeprefix("./")
    has_library = entry_file in tree.path_set
    return PackageManifest(
        ecosystem="cargo",
        path=path,
        name=name,
        version=version,
        licence=licence,
        description=description,
        requires=LocatedValue(f">={rust.value}", path, rust.line) if rust else None,
        dependencies=tuple(
            file.locate(item, "dependencies", item)
            for item in sorted(dependencies)
            if not as_mapping(dependencies[item]).get("optional")
        ),
        optional=dict.fromkeys(sorted(set(file.find_table("features")) - {"default"}), ()),
        commands=tuple(
            LocatedValue(command, path, model.find_toml_line(file.text, "bin"))
            for binary in as_mappings(file.document.get("bin"))
            if (command := as_text(binary.get("name")))
        ),
        imports=(file.locate(import_name, "package", "name"),) if has_library else (),
        entry_files=(entry_file,) if has_library else (),
        private=package.get("publish") is False,
    )
