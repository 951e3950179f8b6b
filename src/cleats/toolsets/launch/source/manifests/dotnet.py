"""Project files of .NET."""

import re
from pathlib import PurePosixPath

from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.manifests.xml import Element, parse
from cleats.toolsets.launch.source.roots import kind_of
from cleats.toolsets.launch.source.tree import Tree


def read(tree: Tree) -> Manifest | None:
    """The project that is packed; among several the one nearest to the top, libraries first."""
    found = []
    for path in tree.paths:
        usable = path.endswith((".csproj", ".fsproj", ".vbproj")) and kind_of(path) != "example"
        if usable and (root := parse(tree.text(path))) and not _is_test(path, root):
            says_package = next(root.all("PackageId"), None) is not None
            is_program = (next(root.all("OutputType"), None) or root).text.lower() == "exe"
            found.append(((not says_package, is_program, path.count("/"), path), path, root))
    if not found:
        return None
    _, path, root = min(found, key=lambda each: each[0])
    shared = parse(tree.text("Directory.Build.props"))

    def said(*names: str) -> Said | None:
        for place, top in ((path, root), ("Directory.Build.props", shared)):
            for name in names:
                element = next(top.all(name), None) if top else None
                if element and element.text and "$(" not in element.text:
                    return Said(element.text, place, element.line)
        return None

    stem = Said(PurePosixPath(path).stem, path)
    frameworks = said("TargetFrameworks", "TargetFramework")
    return Manifest(
        ecosystem="nuget",
        path=path,
        name=said("PackageId", "AssemblyName") or stem,
        version=said("PackageVersion", "Version", "VersionPrefix"),
        licence=said("PackageLicenseExpression"),
        description=said("Description", "PackageDescription"),
        requires=frameworks,
        dependencies=tuple(
            Said(each.attributes["Include"], path, each.line)
            for each in root.all("PackageReference")
            if "Include" in each.attributes and "all" not in _private_assets(each)
        ),
        imports=(said("RootNamespace") or Said(re.sub(r"[^\w.]", "_", stem.value), path),),
        private=(packable := said("IsPackable")) is not None and packable.value.lower() == "false",
    )


def _is_test(path: str, root: Element) -> bool:
    named = re.search(r"(^|[./-])(unit|integration)?tests?([./-]|$)", path, re.IGNORECASE)
    uses = any(
        "Microsoft.NET.Test.Sdk" in each.attributes.get("Include", "")
        for each in root.all("PackageReference")
    )
    return bool(named) or uses


def _private_assets(element: Element) -> str:
    inner = element.find("PrivateAssets")
    return (element.attributes.get("PrivateAssets", "") + (inner.text if inner else "")).lower()
