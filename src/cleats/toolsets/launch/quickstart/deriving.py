"""The two quickstarts: an address in, a configuration and what it was derived from out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cleats.settings import Settings
from cleats.toolsets.launch.config.normal import missing
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.profiles.model import Profile
from cleats.toolsets.launch.quickstart import addresses, discovery, registry, repositories, signals
from cleats.toolsets.launch.quickstart.confidence import Guess, Signal, guess

FIELDS = (signals.FAMILY, signals.PLATFORM)

TOLD = (
    "family",
    "target_platform",
    "locales",
    "layout_mode",
    "allow_inference",
    "github_repo_url",
    "github_ref",
)
"""What is told of a configuration that came from a repository."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A configuration to start with, and what to tell of it."""

    given: Mapping[str, Any]
    shown: Mapping[str, Any]


async def from_product_url(url: str, settings: Settings, env: Mapping[str, str]) -> Derived:
    """A configuration for the product that a page is about.

    Raises:
        ToolError: INVALID_URL, UNSUPPORTED_SITE; INVALID_INPUT when its repository is not known;
            REPO_NOT_FOUND when that cannot be reached.
    """
    page = addresses.read(url, model.every(settings.launch_profiles))
    product = registry.find(page.profile, settings.launch_registry, page.family, page.platform)
    if product is None:
        raise missing(
            {"github_repo_url": _candidates(page.profile, page.family, page.platform)},
            f"nothing says which repository {page.family} for {page.platform} is in",
            "Put it into a file of the setting launch_registry, or use launch_start_run.",
        )
    given = {
        **_common(page.profile),
        "family": page.family,
        "target_platform": page.platform,
        "locales": [page.locale],
        "github_repo_url": product.repo_url,
        "github_ref": await discovery.head_of(product.repo_url, env, product.ref),
    }
    return Derived(given, _page(page))


async def from_repository_url(url: str, settings: Settings, env: Mapping[str, str]) -> Derived:
    """A configuration for the product that a repository holds, when there is no doubt about it.

    Raises:
        ToolError: INVALID_URL, REPO_NOT_FOUND; INVALID_INPUT with the fields that could not be
            guessed, the candidates for them and every signal.
    """
    profile = model.load(settings.launch_profile, settings.launch_profiles)
    repository = repositories.read(url, profile)
    seen = await discovery.look(repository.url, env)
    found = signals.observed(repository, seen.names, seen.texts, profile)
    guesses = {field: guess(field, found) for field in FIELDS}
    if not all(each.value for each in guesses.values()):
        raise ambiguous(guesses, found)
    given = {
        **_common(profile),
        "family": guesses[signals.FAMILY].value,
        "target_platform": guesses[signals.PLATFORM].value,
        "locales": [profile.site.default_locale],
        "github_repo_url": repository.url,
        "github_ref": seen.head,
    }
    return Derived(given, of_repository(given))


def of_page(url: str, settings: Settings) -> dict[str, Any]:
    """What is told of a configuration that came from a page; nothing is asked of the network.

    Raises:
        ToolError: INVALID_URL, UNSUPPORTED_SITE.
    """
    return _page(addresses.read(url, model.every(settings.launch_profiles)))


def of_repository(config: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a configuration that came from a repository."""
    return {name: config[name] for name in TOLD}


def _page(page: addresses.Address) -> dict[str, Any]:
    return {
        "site": page.site,
        "product_slug": page.family,
        "platform": page.platform,
        "locale": page.locale,
    }


def ambiguous(guesses: Mapping[str, Guess], found: list[Signal]) -> Exception:
    """Why no run was made: which fields are open, what they could be, and what was seen."""
    open_fields = {each.field: each.suggested for each in guesses.values() if not each.value}
    error = missing(
        open_fields,
        "Could not unambiguously infer required fields",
        "Give them yourself in the run_config of launch_start_run.",
    )
    error.details |= {
        "confidence": {each.field: each.confidence for each in guesses.values()},
        "signals": [each.as_json() for each in found],
    }
    return error


def _common(profile: Profile) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "required_sections": [each.name for each in profile.sections],
        "layout_mode": "auto",
        "allow_inference": False,
    }


def _candidates(profile: Profile, family: str, platform: str) -> list[str]:
    """Addresses that the convention for names would give it."""
    names = [each for each in profile.repositories.names if "{platform}" in each]
    owners = [each.replace("{family}", family) for each in profile.repositories.owners]
    host = profile.repositories.hosts[0]
    filled = [each.replace("{family}", family).replace("{platform}", platform) for each in names]
    return [f"https://{host}/{owner}/{name}" for owner in owners for name in filled[:1]]
