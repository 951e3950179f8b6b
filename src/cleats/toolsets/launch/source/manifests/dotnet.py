"""The manifest of .NET packages."""

import re
from collections import Counter
from pathlib import PurePosixPath

from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest
from cleats.toolsets.launch.source.manifests.xml_elements import XmlElement, parse_xml


def read_dotnet(tree: CheckoutTree) -> PackageManifest | None:
    """Read the project that is packed; of several, a large library near to the top is preferred."""
    candidates = []
    for path in tree.paths:
        usable = path.endswith((".csproj", ".fsproj", ".vbproj")) and classify_path(path) != "example"
        if usable and (root := parse_xml(tree.read_text(path))) and not _is_test_project(path, root):
            has_package_id = next(root.find_all("PackageId"), None) is not None
            is_program = (next(root.find_all("OutputType"), None) or root).text.lower() == "exe"
            size = sum(tree.file_size(item) for item in tree.paths_below(path.rpartition("/")[0]))
            candidates.append(((not has_package_id, is_program, path.count("/"), -size, path), path, root))
    if not candidates:
        return None
    _, path, root = min(candidates, key=lambda item: item[0])
    shared_properties = parse_xml(tree.read_text("Directory.Build.props"))

    def find_value(*names: str) -> LocatedValue | None:
        for source_path, top in ((path, root), ("Directory.Build.props", shared_properties)):
            for name in names:
                element = next(top.find_all(name), None) if top else None
                if element and element.text not in ("", "0.0.0") and "$(" not in element.text:
                    return LocatedValue(element.text, source_path, element.line)
        return None

    stem = LocatedValue(PurePosixPath(path).stem, path)
    frameworks = find_value("TargetFrameworks", "TargetFramework")
    return PackageManifest(
        ecosystem="nuget",
        path=path,
        name=find_value("PackageId", "AssemblyName") or stem,
        version=find_value("PackageVersion", "Version", "VersionPrefix"),
        licence=find_value("PackageLicenseExpression"),
        description=find_value("Description", "PackageDescription"),
        requires=frameworks,
        dependencies=tuple(
            LocatedValue(item.attributes["Include"], path, item.line)
            for item in root.find_all("PackageReference")
            if "Include" in item.attributes and "all" not in _read_private_assets(item)
        ),
        imports=(_find_namespace(tree, path) or LocatedValue(re.sub(r"[^\w.]", "_", stem.value), path),),
        private=(packable := find_value("IsPackable")) is not None and packable.value.lower() == "false",
    )


def _find_namespace(tree: CheckoutTree, project_path: str) -> LocatedValue | None:
    """Return the namespace that most files of a project declare, or one that contains it and declares types, too."""
    folder = project_path.rpartition("/")[0]
    paths = [path for path in tree.paths_below(folder) if path.endswith(".cs") and classify_path(path) == "source"]
    pattern = r"^\s*namespace\s+([A-Za-z_][\w.]*)"
    declared = [found for path in paths if (found := ManifestFile.load(tree, path, "source_code").find(pattern))]
    counts = Counter(value.value for value in declared)
    most = max(counts, key=lambda name: (counts[name], -len(name), name), default="")
    outer = min((name for name in counts if f"{most}.".startswith(f"{name}.")), key=len, default="")
    return next((value for value in declared if value.value == outer), None)


def _is_test_project(path: str, root: XmlElement) -> bool:
    has_test_name = re.search(r"(^|[./-])(unit|integration)?tests?([./-]|$)", path, re.IGNORECASE)
    packages = [reference.attributes.get("Include", "") for reference in root.find_all("PackageReference")]
    return bool(has_test_name) or any("Microsoft.NET.Test.Sdk" in package for package in packages)


def _read_private_assets(element: XmlElement) -> str:
    inner = element.find("PrivateAssets")
    return (element.attributes.get("PrivateAssets", "") + (inner.text if inner else "")).lower()
