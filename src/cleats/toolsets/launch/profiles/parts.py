"""The parts of a profile. All values are frozen and are checked before they are created."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

LayoutVersion = Literal["v1", "v2"]
SITE_KIND_NAMES: Final = ("hugo", "mkdocs")


class RequiredPage(Struct, frozen=True, kw_only=True):
    """A page that a section always has."""

    slug: str
    role: str
    title: str = ""


class LayoutTemplates(Struct, frozen=True, kw_only=True):
    """A template for each layout; a site has one of them or both."""

    v1: str = ""
    v2: str = ""

    def for_layout(self, layout: str) -> str:
        return self.v2 if layout == "v2" else self.v1


class SiteSection(Struct, frozen=True, kw_only=True):
    """One part of the site: its location, its pages, its URLs."""

    name: str
    title: str
    host: str = ""
    root: str = ""
    localization: Literal["dir", "filename"] = "dir"
    paths: LayoutTemplates
    """Templates of the path of a page, below the content root."""
    links: LayoutTemplates
    """Templates of the URL path of a page on its host."""
    allowed: LayoutTemplates
    """Templates of the paths that a run may write, below the content root."""
    urls: tuple[str, ...] = ()
    """Patterns of the URLs that identify a product in this section."""
    hugo_config: tuple[str, ...] = ()
    """Files that may configure this section of the site; the first that exists is used."""
    minimum: int = 1
    maximum: int = 50
    pages: tuple[RequiredPage, ...] = ()


class AliasedName(Struct, frozen=True, kw_only=True):
    """A family or a platform: its name, its title in prose, and its aliases."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()

    @property
    def folded_names(self) -> frozenset[str]:
        """The name and the aliases, for comparisons that ignore case."""
        return frozenset(name.casefold() for name in (self.name, *self.aliases))


class ProductFamilies(Struct, frozen=True, kw_only=True):
    """The product families. An open list accepts any name that is valid in a path."""

    open: bool = False
    known: tuple[AliasedName, ...] = ()


class RegisteredProduct(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A product whose repository is known."""

    family: str
    platform: str
    repo_url: str
    ref: str = "HEAD"


class ProductRegistry(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that names the repositories of products."""

    product: tuple[RegisteredProduct, ...] = ()
    site_repo_url: str = ""


class ProductRepositories(Struct, frozen=True, kw_only=True):
    """The naming rules for the repositories of the products."""

    hosts: tuple[str, ...] = ("github.com",)
    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Patterns of the package names in the manifests of these repositories."""
    registry: tuple[RegisteredProduct, ...] = ()


class ProfileSite(Struct, frozen=True, kw_only=True):
    """The repository of the site."""

    kind: Literal["hugo", "mkdocs"] = "hugo"
    """The generator that builds it."""
    alternatives: tuple[str, ...] = ()
    """Profiles for sites of other kinds: a run uses the first whose configuration the site has."""
    repo_url: str = ""
    ref: str = "HEAD"
    content_root: str = "content"
    default_locale: str = "en"
    locales: tuple[str, ...] = ("en",)
    layout: LayoutVersion = "v2"
    """The layout that `auto` selects when the platform is known."""
    environment: str = "production"
    """The environment that Hugo builds."""


class ValidationGates(Struct, frozen=True, kw_only=True):
    """The gates of each validation profile, in the order they run."""

    local: tuple[str, ...]
    ci: tuple[str, ...]
    prod: tuple[str, ...]

    def for_profile(self, validation_profile: str) -> tuple[str, ...]:
        return {"local": self.local, "ci": self.ci, "prod": self.prod}[validation_profile]


CHANGE_TEMPLATE_WORDS: Final = frozenset(
    {"run_id", "product_slug", "product_name", "family", "platform"} | {"repo_url", "repo_sha", "pages"}
)
"""The placeholders that a template of a change may contain."""

BRANCH_TEMPLATE_WORDS: Final = CHANGE_TEMPLATE_WORDS - {"product_name", "repo_url"}
"""The placeholders that may be part of a branch name."""


class PublishingTemplates(Struct, frozen=True, kw_only=True):
    """Templates for the texts of a change."""

    branch: str = "launch/{run_id}/{product_slug}"
    commit_message: str
    commit_body: str
    pr_title: str
    author_name: str = "Cleats"
    author_email: str = "cleats@localhost"


class Brand(Struct, frozen=True, kw_only=True):
    """The name of a product, and the topics that need proof."""

    product_name: str
    forbidden_topics: tuple[str, ...] = ()


_PLACEHOLDER_PATTERN: Final = re.compile(r"\{([a-z_]+)(/?)\}")
_SEGMENT_PATTERN: Final = re.compile(r"\{([a-z_]+)([?*]?)\}")


def list_placeholders(template: str) -> frozenset[str]:
    """Return the placeholders of a template."""
    return frozenset(name for name, _ in _PLACEHOLDER_PATTERN.findall(template))


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of a template by their values.

    Raises:
        KeyError: A placeholder has no value.
    """

    def replace_placeholder(placeholder: re.Match[str]) -> str:
        value = values[placeholder[1]]
        return f"{value}/" if placeholder[2] and value else value

    return _PLACEHOLDER_PATTERN.sub(replace_placeholder, template)


SegmentMatcher = Callable[[str, str], str | None]
"""A function that returns the value of a segment for a placeholder; None when it does not match."""


def match_path(pattern: str, path: Sequence[str], match_segment: SegmentMatcher) -> dict[str, str] | None:
    """Return the values of a path under a pattern, or None.

    A placeholder matches one segment, `{name?}` at most one, `{name*}` all that are left. The first
    match counts, and optional segments are matched before they are skipped.
    """
    return next(_iterate_matches(list(filter(None, pattern.split("/"))), tuple(path), match_segment), None)


def _iterate_matches(
    pattern: Sequence[str], path: tuple[str, ...], match_segment: SegmentMatcher
) -> Iterator[dict[str, str]]:
    if not pattern:
        yield from () if path else ({},)
        return
    placeholder, rest = _SEGMENT_PATTERN.fullmatch(pattern[0]), pattern[1:]
    if placeholder is None:
        if path and path[0].lower() == pattern[0]:
            yield from _iterate_matches(rest, path[1:], match_segment)
        return
    name, times = placeholder.groups()
    if times == "*":
        yield {name: "/".join(path)} if path else {}
        return
    if path and (value := match_segment(name, path[0])) is not None:
        yield from ({name: value, **values} for values in _iterate_matches(rest, path[1:], match_segment))
    if times == "?":
        yield from _iterate_matches(rest, path, match_segment)
