"""The two quickstarts: from a URL to a configuration and a summary of what it was derived from."""

import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

import anyio
import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.launch.config.normalise import missing_fields_error
from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.git.client import HardenedGit, find_remote_commit
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.profiles.parts import ProductRegistry, RegisteredProduct
from cleats.toolsets.launch.quickstart import signals, urls
from cleats.toolsets.launch.quickstart.signals import guess_value, select_signal_files


def _read_registry(profile: Profile, files: Sequence[Path]) -> Iterator[ProductRegistry]:
    """Yield the files that name the repositories of products; those of the operator take precedence."""
    builtin_file = profile.registry_file
    for file in (*files, *([builtin_file] if builtin_file.is_file() else [])):
        try:
            yield msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), ProductRegistry)
        except (OSError, ValueError) as error:  # msgspec's and TOML's errors are of this kind
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ToolError(
                ErrorCode.INVALID_INPUT,
                f"the registry {file.name} cannot be used: {reason}",
                hint="The setting launch_registry lists it, or it belongs to the profile.",
            ) from None


def _find_product(page: urls.ProductPage, products: Iterable[RegisteredProduct]) -> RegisteredProduct | None:
    for product in products:
        names = page.profile.find_family(product.family), page.profile.find_platform(product.platform)
        if [name.name if name else "" for name in names] == [page.family, page.platform]:
            return product
    return None


FETCH_TIMEOUT_SECONDS: Final = 200.0
"""Time limit of the fetch; the whole call has 300 seconds."""

MAX_TEXT_BYTES: Final = 256 << 10
"""Bytes of a README or manifest that are read."""


class RepositoryPreview(NamedTuple):
    """The HEAD commit, file names and selected texts of a remote repository."""

    head: str
    names: tuple[str, ...]
    texts: Mapping[str, str]


async def resolve_remote_ref(url: str, env: Mapping[str, str], ref: str = "HEAD") -> str:
    """Return the commit of HEAD, a branch or a tag of a remote repository.

    Raises:
        ToolError: REPO_NOT_FOUND; retryable when the network failed.
    """
    commit = await find_remote_commit(url, env, ref)
    if not commit:
        missing = "no commit" if ref == "HEAD" else f"no branch or tag {ref!r}"
        raise ToolError(ErrorCode.REPO_NOT_FOUND, f"{redact_url(url)} has {missing}")
    return commit


async def preview_repository(url: str, env: Mapping[str, str]) -> RepositoryPreview:
    """Return the HEAD of a repository, its file names, and the texts that hold signals.

    Raises:
        ToolError: As `resolve_remote_ref`.
    """
    head = await resolve_remote_ref(url, env)
    folder = Path(await anyio.to_thread.run_sync(lambda: mkdtemp(prefix="cleats-look-")))
    try:
        git = HardenedGit(env, folder, is_private=True)
        await git.run(url, "init", "--quiet", "--template=", ".")
        await git.run(url, "remote", "add", "origin", url)
        await git.run(url, "config", "remote.origin.promisor", "true")
        await git.run(url, "config", "remote.origin.partialclonefilter", "blob:none")
        await git.run(
            url,
            *("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1"),
            *("--filter=blob:none", "origin", head),
            seconds=FETCH_TIMEOUT_SECONDS,
        )
        listing = await git.run(url, "ls-tree", "-r", "-z", "--name-only", "--full-tree", head)
        names = tuple(filter(None, listing.decode(errors="replace").split("\0")))
        texts = {
            name: (await git.run(url, "cat-file", "blob", f"{head}:{name}"))[:MAX_TEXT_BYTES].decode(errors="replace")
            for name in select_signal_files(names)
        }
    finally:
        with suppress(OSError), anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
    return RepositoryPreview(head, names, texts)


REPORTED_FIELDS = (
    *("family", "target_platform", "locales", "layout_mode", "allow_inference"),
    *("github_repo_url", "github_ref"),
)
"""Fields reported for a configuration that was derived from a repository."""


async def derive_from_product_url(url: str, settings: Settings, env: Mapping[str, str]) -> dict[str, Any]:
    """Derive a configuration for the product of a page.

    Raises:
        ToolError: INVALID_URL, UNSUPPORTED_SITE; INVALID_INPUT when the repository of the product
            is unknown; REPO_NOT_FOUND when it cannot be reached.
    """
    page = _parse_writable_page(url, settings)
    registry = [*_read_registry(page.profile, settings.launch.registry)]
    listed = [product for file in registry for product in file.product]
    product = _find_product(page, [*listed, *page.profile.repositories.registry])
    if product is None:
        raise missing_fields_error(
            {"github_repo_url": _suggest_repository_urls(page.profile, page.family, page.platform)},
            f"the repository of {page.family} for {page.platform} is unknown",
            "Add it to a file in the setting launch_registry, or use launch_start_run.",
        )
    config = {
        **_build_common_config(page.profile),
        "family": page.family,
        "target_platform": page.platform,
        "locales": [page.locale],
        "github_repo_url": product.repo_url,
        "github_ref": await resolve_remote_ref(product.repo_url, env, product.ref),
    }
    has_site = page.profile.site.repo_url or settings.launch.site
    site_url = "" if has_site else next((file.site_repo_url for file in registry if file.site_repo_url), "")
    return config | ({"site_repo_url": site_url} if site_url else {})


async def derive_from_repository_url(url: str, settings: Settings, env: Mapping[str, str]) -> dict[str, Any]:
    """Derive a configuration for the product of a repository, when the guess is unambiguous.

    Raises:
        ToolError: INVALID_URL, REPO_NOT_FOUND; INVALID_INPUT with the fields that could not be
            guessed, their candidates and every signal.
    """
    default_profile = model.load_named_profile(settings.launch.profile, settings.launch.profiles)
    repository = urls.parse_repository_url(url, default_profile)
    profiles = _list_candidate_profiles(default_profile, settings)
    preview = await preview_repository(repository.url, env)
    candidates = [_guess_product(profile, repository, preview) for profile in profiles]
    product = next(filter(_ProductGuess.is_certain, candidates), None)
    if product is None:
        # Explain the profile that knows most about the repository; the first of equals.
        raise _ambiguity_error(max(candidates, key=lambda item: item.guesses[signals.FAMILY_FIELD].confidence))
    return {
        **_build_common_config(product.profile),
        "family": product.guesses[signals.FAMILY_FIELD].value,
        "target_platform": product.guesses[signals.PLATFORM_FIELD].value,
        "locales": [product.profile.site.default_locale],
        "github_repo_url": repository.url,
        "github_ref": preview.head,
    }


class _ProductGuess(NamedTuple):
    """The product of a repository, as one profile sees it."""

    profile: Profile
    guesses: Mapping[str, signals.Guess]
    signals: Sequence[signals.Signal]

    def is_certain(self) -> bool:
        return all(guess.value for guess in self.guesses.values())


def _list_candidate_profiles(default_profile: Profile, settings: Settings) -> list[Profile]:
    """Return the profiles that list their products, which recognise a repository by its names, and the default."""
    others = [item for item in model.load_all_profiles(settings.launch.profiles) if item.name != default_profile.name]
    listing = [profile for profile in (default_profile, *others) if not profile.families.open]
    return listing if default_profile in listing else [*listing, default_profile]


def _guess_product(profile: Profile, repository: urls.HostedRepository, preview: RepositoryPreview) -> _ProductGuess:
    all_signals = signals.collect_signals(repository, preview.names, preview.texts, profile)
    return _ProductGuess(
        profile, {field: guess_value(field, all_signals) for field in signals.GUESSED_FIELDS}, all_signals
    )


def _ambiguity_error(product: _ProductGuess) -> ToolError:
    error = missing_fields_error(
        {guess.field: guess.suggested_values for guess in product.guesses.values() if not guess.value},
        "Could not unambiguously infer required fields",
        "Give them yourself in the run_config of launch_start_run.",
    )
    error.details |= {
        "confidence": {guess.field: guess.confidence for guess in product.guesses.values()},
        "signals": [signal.as_json() for signal in product.signals],
    }
    return error


def describe_page_config(url: str, settings: Settings) -> dict[str, Any]:
    """Return the summary of a configuration derived from a page, without using the network.

    Raises:
        ToolError: INVALID_URL, UNSUPPORTED_SITE.
    """
    page = _parse_writable_page(url, settings)
    names = {"product_slug": page.family, "platform": page.platform, "locale": page.locale}
    return {"site": page.section.host, **names}


def _parse_writable_page(url: str, settings: Settings) -> urls.ProductPage:
    """Return the product page of a URL; a page in a language without templates cannot be written."""
    page = urls.parse_page_url(url, model.load_all_profiles(settings.launch.profiles))
    folder = page.profile.templates_folder
    locales = [locale for locale in page.profile.site.locales if locale == "en" or (folder / locale).is_dir()]
    if page.locale not in locales:
        raise ToolError(
            ErrorCode.INVALID_URL,
            f"the address is of a page in {page.locale!r}, and {page.profile.name} has no templates for that language",
            hint=f"Give the address of a page in {' or '.join(locales)}, or add templates to the profile.",
            details={"locale": page.locale, "locales": locales},
        )
    return page


def _build_common_config(profile: Profile) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "required_sections": [section.name for section in profile.sections],
        "layout_mode": "auto",
        "allow_inference": False,
    }


def _suggest_repository_urls(profile: Profile, family: str, platform: str) -> list[str]:
    repositories = profile.repositories
    names = [pattern for pattern in repositories.names if "{platform}" in pattern][:1]
    urls = [f"https://{repositories.hosts[0]}/{owner}/{name}" for owner in repositories.owners for name in names]
    return [url.replace("{family}", family).replace("{platform}", platform) for url in urls]
