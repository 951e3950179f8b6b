"""What a profile is made of. Every value is frozen and was checked before it was made."""

from typing import Final, Literal

from msgspec import Struct

Layout = Literal["v1", "v2"]


class PagePlan(Struct, frozen=True, kw_only=True):
    """A page that a section always has."""

    slug: str
    role: str
    title: str = ""


class ByLayout(Struct, frozen=True, kw_only=True):
    """A template for each layout; a site has the one, the other or both."""

    v1: str = ""
    v2: str = ""

    def of(self, layout: str) -> str:
        return self.v2 if layout == "v2" else self.v1


class Section(Struct, frozen=True, kw_only=True):
    """One part of the site: its place, its pages, its addresses."""

    name: str
    title: str
    host: str = ""
    root: str = ""
    localization: Literal["dir", "filename"] = "dir"
    paths: ByLayout
    """Where a page lies, below the content root."""
    links: ByLayout
    """What address a page has on its host."""
    allowed: ByLayout
    """What a run may write, below the content root."""
    urls: tuple[str, ...] = ()
    """Patterns of the addresses that stand for a product in this section."""
    hugo_config: tuple[str, ...] = ()
    """Files that configure this section of the site, the first that is there."""
    minimum: int = 1
    maximum: int = 50
    pages: tuple[PagePlan, ...] = ()


class Named(Struct, frozen=True, kw_only=True):
    """A family or a platform: its name here, its name in prose, other names it goes by."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()


class Families(Struct, frozen=True, kw_only=True):
    """The products. An open list takes any name that is one in a path."""

    open: bool = False
    known: tuple[Named, ...] = ()


class Registered(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A product whose repository is known."""

    family: str
    platform: str
    repo_url: str
    ref: str = "HEAD"


class Repositories(Struct, frozen=True, kw_only=True):
    """How the repositories of the products are called."""

    hosts: tuple[str, ...] = ("github.com",)
    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """How packages are called in the manifests of these repositories."""
    registry: tuple[Registered, ...] = ()


class Site(Struct, frozen=True, kw_only=True):
    """The repository of the site."""

    repo_url: str = ""
    ref: str = "HEAD"
    content_root: str = "content"
    default_locale: str = "en"
    locales: tuple[str, ...] = ("en",)
    layout: Layout = "v2"
    """The layout that `auto` means when the platform is known."""
    environment: str = "production"
    """The environment that Hugo builds."""


class Gates(Struct, frozen=True, kw_only=True):
    """The gates of each validation profile, in the order they run."""

    local: tuple[str, ...]
    ci: tuple[str, ...]
    prod: tuple[str, ...]

    def of(self, validation_profile: str) -> tuple[str, ...]:
        return {"local": self.local, "ci": self.ci, "prod": self.prod}[validation_profile]


WORDS: Final = frozenset(
    {"run_id", "product_slug", "product_name", "family", "platform"}
    | {"repo_url", "repo_sha", "pages"}
)
"""The names that a template of a change may have."""

BRANCH_WORDS: Final = WORDS - {"product_name", "repo_url"}
"""Those of them that can be part of the name of a branch."""


class Publishing(Struct, frozen=True, kw_only=True):
    """The words of a change, as templates."""

    branch: str = "launch/{run_id}/{product_slug}"
    commit_message: str
    commit_body: str
    pr_title: str
    author_name: str = "Cleats"
    author_email: str = "cleats@localhost"


class Brand(Struct, frozen=True, kw_only=True):
    """How a product is called, and what is never said about it without proof."""

    product_name: str
    forbidden_topics: tuple[str, ...] = ()
