"""The configuration of a MkDocs site, read from its file as plain data, and what a build may use of it.

MkDocs is a Python program, and a configuration can make it run code: hooks, plugins, extensions, tags of Python
objects, templates. Cleats never passes the file of a site to MkDocs. It parses the file, refuses everything that is not
on the lists below, and builds from a copy that it writes itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

from cleats.toolsets.launch.source.checkout.safe_parsing import as_mapping
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

CONFIG_NAMES: Final = ("mkdocs.yml", "mkdocs.yaml")
"""The files that MkDocs looks for, in its order."""

MAX_CONFIG_CHARACTERS: Final = 256 * 1024
MAX_ALIASES: Final = 20
"""Size and YAML aliases of a configuration: nested aliases can make a small file grow exponentially."""

SETTING_NAMES: Final = frozenset(
    {"site_name", "nav", "exclude_docs", "draft_docs", "not_in_nav", "site_url", "site_description"}
    | {"site_author", "theme", "docs_dir", "site_dir", "copyright", "dev_addr", "use_directory_urls"}
    | {"repo_url", "repo_name", "edit_uri_template", "edit_uri", "extra_css", "extra_javascript"}
    | {"markdown_extensions", "strict", "remote_branch", "remote_name", "extra", "plugins", "watch"}
    | {"validation"}
)
"""The settings of MkDocs 1.6 that cannot run code or read outside the site, given the lists below."""

CODE_SETTINGS: Final[Mapping[str, str]] = {
    "hooks": "runs Python files of the site",
    "extra_templates": "runs templates of the site",
    "INHERIT": "reads another configuration",
    "mdx_configs": "configures extensions",
}
UNUSED_SETTINGS: Final = frozenset({"site_dir", "dev_addr", "strict", "watch", "remote_branch", "remote_name"})
"""Settings that a build of Cleats decides itself."""

THEME_NAMES: Final = frozenset({"mkdocs", "readthedocs"})
TEMPLATE_SETTINGS: Final = ("custom_dir", "static_templates")
"""Settings of a theme that name templates: they are programs of Jinja, which MkDocs does not restrict."""

SEARCH_SETTINGS: Final = frozenset({"lang", "separator", "min_search_length", "indexing", "enabled"})
"""The settings of the plugin `search`, the only one that is allowed; `prebuild_index` can start Node."""

EXTENSION_NAMES: Final = frozenset(
    {"abbr", "admonition", "attr_list", "codehilite", "def_list", "extra", "fenced_code", "footnotes"}
    | {"legacy_attrs", "legacy_em", "md_in_html", "meta", "nl2br", "sane_lists", "smarty", "tables", "toc"}
    | {"wikilinks"}
)
"""The extensions of Markdown itself; any other name is the name of a Python module."""


@dataclass(frozen=True, slots=True)
class RefusedSetting:
    """A setting with which the site is not built."""

    line: int
    message: str


@dataclass(frozen=True)
class MkDocsConfig:
    """The settings of a site; empty without a configuration, or with one that cannot be read."""

    path: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of each setting."""
    tags: tuple[tuple[int, str], ...] = ()
    """The lines and the names of YAML tags that are not plain data; their values are dropped."""
    fault: str = ""
    """The reason why the file cannot be read."""

    @property
    def docs_folder(self) -> str:
        """The folder of the pages, relative to the site."""
        folder = self.document.get("docs_dir")
        return PurePosixPath(folder).as_posix() if isinstance(folder, str) and folder else "docs"

    @property
    def site_url(self) -> str:
        url = self.document.get("site_url")
        return url if isinstance(url, str) else ""

    @property
    def has_nav(self) -> bool:
        """Whether the file lists the pages; without a list, MkDocs makes one of the files."""
        return isinstance(self.document.get("nav"), list)

    @cached_property
    def nav_pages(self) -> tuple[str, ...]:
        """The files that the navigation lists, relative to the folder of the pages."""
        return tuple(_iterate_nav_pages(self.document.get("nav"), depth=0))

    @cached_property
    def refusals(self) -> tuple[RefusedSetting, ...]:
        """Everything that keeps the site from being built, in the order of the file."""
        found = [RefusedSetting(line, f"the tag {tag} is not allowed: only plain data is") for line, tag in self.tags]
        for name, value in self.document.items():
            line = self.lines.get(name, 0)
            found += [RefusedSetting(line, message) for message in _explain_refusals(name, value)]
        return tuple(sorted(found, key=lambda refusal: (refusal.line, refusal.message)))

    def render_build_file(self, site: Path) -> str:
        """Return the configuration for a build: the checked settings, with the folder of the pages as a full path."""
        settings = {name: value for name, value in self.document.items() if name not in UNUSED_SETTINGS}
        return yaml.safe_dump({**settings, "docs_dir": str(site / self.docs_folder)}, sort_keys=False)


def read_mkdocs_config(tree: CheckoutTree) -> MkDocsConfig:
    """Read the configuration of a site."""
    path = next((name for name in CONFIG_NAMES if name in tree.path_set), "")
    return parse_mkdocs_config(path, tree.read_text(path)) if path else MkDocsConfig()


def parse_mkdocs_config(path: str, text: str | None) -> MkDocsConfig:
    """Parse a configuration; no tag of it makes anything but plain data."""
    if text is None or len(text) > MAX_CONFIG_CHARACTERS:
        return MkDocsConfig(path, fault="it is not a text of a usual size")
    loader = _PlainDataLoader(text)
    try:
        aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader))
        if aliases > MAX_ALIASES:
            return MkDocsConfig(path, fault=f"it has more than {MAX_ALIASES} aliases")
        node = loader.get_single_node()
        document = {} if node is None else loader.construct_document(node)
    except RecursionError:
        return MkDocsConfig(path, fault="it is nested too deeply")
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        return MkDocsConfig(path, fault=" ".join(str(error).split())[:200])
    if not isinstance(document, dict) or not all(isinstance(name, str) for name in document):
        return MkDocsConfig(path, fault="it is not a table of settings")
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in getattr(node, "value", ())}
    return MkDocsConfig(path, document, lines, tuple(loader.unknown_tags))


class _PlainDataLoader(yaml.SafeLoader):
    """A loader that notes every tag that is not plain data, and drops its value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.unknown_tags: list[tuple[int, str]] = []

    def note_unknown_tag(self, node: yaml.Node) -> None:
        self.unknown_tags.append((node.start_mark.line + 1, node.tag.replace("tag:yaml.org,2002:", "!!")))


_PlainDataLoader.add_constructor(None, _PlainDataLoader.note_unknown_tag)


def _iterate_nav_pages(nav: Any, depth: int) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list | dict) and depth < 20:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _iterate_nav_pages(item, depth + 1)


def _explain_refusals(name: str, value: Any) -> Iterator[str]:
    if name in CODE_SETTINGS:
        if value:
            yield f"{name} is not allowed: it {CODE_SETTINGS[name]}"
    elif name not in SETTING_NAMES:
        yield f"{name} is not a setting of MkDocs 1.6"
    elif name in _EXPLANATIONS:
        yield from _EXPLANATIONS[name](value)


def _explain_plugins(value: Any) -> Iterator[str]:
    for plugin, options in _iterate_named(value):
        if plugin != "search":
            yield f"the plugin {plugin} is not allowed: a plugin is a program; only search is"
            continue
        yield from (
            f"{option} of the plugin search is not allowed"
            for option in sorted(map(str, options))
            if option not in SEARCH_SETTINGS
        )


def _explain_extensions(value: Any) -> Iterator[str]:
    for extension, _ in _iterate_named(value):
        if extension.removeprefix("markdown.extensions.") not in EXTENSION_NAMES:
            yield f"the extension {extension} is not allowed: it is not part of Python-Markdown"


def _explain_docs_folder(value: Any) -> Iterator[str]:
    if not is_inside(value):
        yield "docs_dir is outside the site"


def _explain_theme(value: Any) -> Iterator[str]:
    theme = {"name": value} if isinstance(value, str) else as_mapping(value)
    if theme.get("name", "mkdocs") not in THEME_NAMES:
        yield f"the theme {theme.get('name')} is not allowed: only {' and '.join(sorted(THEME_NAMES))} are"
    for setting in TEMPLATE_SETTINGS:
        if theme.get(setting):
            yield f"{setting} of the theme is not allowed: templates are programs"


def is_inside(folder: Any) -> bool:
    """Return whether a setting names a folder below the one of the configuration."""
    if not isinstance(folder, str) or "\\" in folder:
        return False
    parts = PurePosixPath(folder).parts
    return bool(parts) and not PurePosixPath(folder).is_absolute() and ".." not in parts and ":" not in parts[0]


def _iterate_named(value: Any) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """Yield the names and the options of a list of plugins or extensions, in either of its forms."""
    for item in value if isinstance(value, list) else [value] if isinstance(value, dict) else ():
        pairs = item.items() if isinstance(item, dict) else [(item, None)]
        yield from ((str(name), as_mapping(options)) for name, options in pairs)


_EXPLANATIONS: Final[Mapping[str, Callable[[Any], Iterator[str]]]] = {
    "theme": _explain_theme,
    "plugins": _explain_plugins,
    "markdown_extensions": _explain_extensions,
    "docs_dir": _explain_docs_folder,
}
