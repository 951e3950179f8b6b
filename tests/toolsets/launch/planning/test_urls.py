"""Tests of the URLs of product pages: their meaning, and what is not such a URL."""

import tomllib
from pathlib import Path
from shutil import copytree
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import make_settings
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.quickstart import derive, urls
from cleats.toolsets.launch.quickstart.urls import NameMatch, ProductPage
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS

ASPOSE_PROFILE = model.load_named_profile("aspose")


def read_address_parts(url: str) -> tuple[str, str, str, str, str]:
    address = urls.parse_page_url(url, [ASPOSE_PROFILE])
    return address.section.host, address.family, address.locale, address.platform, address.page


def catch_refusal(url: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        urls.parse_page_url(url, [ASPOSE_PROFILE])
    return caught.value


ADDRESS_CASES = {
    "https://products.aspose.org/3d/en/python/": ("products", "3d", "en", "python", ""),
    "https://docs.aspose.org/cells/de/java/": ("docs", "cells", "de", "java", ""),
    "https://docs.aspose.org/cells/en/java/install/": ("docs", "cells", "en", "java", "install"),
    "https://kb.aspose.org/pdf/fr/go/": ("kb", "pdf", "fr", "go", ""),
    "https://kb.aspose.org/pdf/fr/go/faq/": ("kb", "pdf", "fr", "go", "faq"),
    "https://blog.aspose.org/words/cpp/": ("blog", "words", "en", "cpp", ""),
    "https://blog.aspose.org/de/words/cpp/": ("blog", "words", "de", "cpp", ""),
    "https://blog.aspose.org/de/words/cpp/new/": ("blog", "words", "de", "cpp", "new"),
    "https://reference.aspose.org/zip/en/rust/": ("reference", "zip", "en", "rust", ""),
}


@pytest.mark.parametrize("url", ADDRESS_CASES)
def test_every_pattern_of_the_spec_is_read(url: str) -> None:
    section, *rest = ADDRESS_CASES[url]

    assert read_address_parts(url) == (f"{section}.aspose.org", *rest)


@pytest.mark.parametrize(
    "url",
    [
        "https://products.aspose.org/3d/en/python",
        "https://products.aspose.org/3d/python/",
        "https://PRODUCTS.Aspose.ORG/3D/EN/Python/",
        "https://products.aspose.org:443/3d/en/python/",
        "https://products.aspose.org./3d/en/python/",
        "https://products.aspose.org/3d/en/python/?utm=1#top",
        "https://products.aspose.org/%33d/en/pyth%6Fn/",
        "  https://products.aspose.org/3d/en/python/ ",
    ],
)
def test_what_makes_no_other_page_makes_no_difference(url: str) -> None:
    assert read_address_parts(url) == ("products.aspose.org", "3d", "en", "python", "")


@pytest.mark.parametrize(
    ("url", "platform"),
    [
        ("https://docs.aspose.org/3d/en/net/", "dotnet"),
        ("https://docs.aspose.org/3d/en/nodejs/", "javascript"),
        ("https://docs.aspose.org/3d/en/c%2B%2B/", "cpp"),
        ("https://docs.aspose.org/3d/en/android/", "java"),
        ("https://docs.aspose.org/3d/csharp/x/", "dotnet"),
    ],
)
def test_other_names_of_a_platform_are_that_platform(url: str, platform: str) -> None:
    assert read_address_parts(url)[3] == platform


@requirement("e:url:invalid")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "products.aspose.org/3d/en/python/",
        "ftp://products.aspose.org/3d/en/python/",
        "http://products.aspose.org/3d/en/python/",
        "https://user:word@products.aspose.org/3d/en/python/",
        "https://products.aspose.org:8443/3d/en/python/",
        "https://products.aspose.org:port/3d/en/python/",
        "https://products.aspose.org/",
        "https://products.aspose.org/3d/",
        "https://products.aspose.org/3d/en/",
        "https://products.aspose.org/nothing/en/python/",
        "https://products.aspose.org/3d/en/cobol/",
        "https://products.aspose.org/3d/xx/python/",
        "https://products.aspose.org/3d/en/python/more/",
        "https://reference.aspose.org/3d/en/python/api/",
        "https://products.aspose.org/3d//en/python/",
        "https://products.aspose.org//3d/en/python/",
        "https://products.aspose.org/3d/en/python//",
        "https://products.aspose.org/3d/en%2Fpython/",
        "https://docs.aspose.org/3d/en/python/../x/",
        "https://docs.aspose.org/3d/en/python/%2e%2e/",
        "https://docs.aspose.org/3d/en/python/%ff/",
        "https://docs.aspose.org/3d/en/python/%zz/",
        "https://docs.aspose.org/3d/en/python/a b/",
        "https://docs.aspose.org/3d/en/python/" + "x" * 2048,
        "https:///3d/en/python/",
        "https://[products.aspose.org/3d/en/python/",
    ],
)
def test_what_fits_no_pattern_is_an_invalid_url(url: str) -> None:
    assert catch_refusal(url).code is ErrorCode.INVALID_URL


@requirement("e:url:unsupported")
@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/3d/en/python/",
        "https://www.products.aspose.org/3d/en/python/",
        "https://aspose.org/3d/en/python/",
        "https://products.aspose.org.example.org/3d/en/python/",
        "http://127.0.0.1/",
    ],
)
def test_a_host_of_no_profile_is_an_unsupported_site(url: str) -> None:
    error = catch_refusal(url)

    assert error.code is ErrorCode.UNSUPPORTED_SITE
    assert "products.aspose.org" in error.details["hosts"]


def test_a_refusal_says_what_would_do() -> None:
    error = catch_refusal("https://docs.aspose.org/3d/en/cobol/")

    assert "cobol" in error.message
    assert error.details["patterns"] == ["https://docs.aspose.org/{family}/{locale?}/{platform}/{page*}/"]
    assert "python" in error.details["platforms"]


families = st.sampled_from([entry.name for entry in ASPOSE_PROFILE.families.known])
platforms = st.sampled_from([entry.name for entry in ASPOSE_PROFILE.platforms])
locales = st.sampled_from(ASPOSE_PROFILE.site.locales)
slug = st.text(st.characters(categories=["L", "N"], include_characters="-_ é"), min_size=1).filter(
    lambda text: text.isprintable()
)


@st.composite
def page_addresses(draw: st.DrawFn) -> ProductPage:
    section = draw(st.sampled_from(ASPOSE_PROFILE.sections))
    paged = section.urls[0].endswith("{page*}")
    page = draw(st.lists(slug, max_size=3).map("/".join)) if paged else ""
    return ProductPage(ASPOSE_PROFILE, section, draw(families), draw(platforms), draw(locales), page)


def format_page_url(page: ProductPage, *, include_default_locale: bool) -> str:
    values = {"family": page.family, "platform": page.platform, "locale": page.locale, "page": page.page}
    segments: list[str] = []
    for part in page.section.urls[0].split("/"):
        value = values.get(part.strip("{}?*"), part)
        if include_default_locale or not part.endswith("?}") or value != page.profile.site.default_locale:
            segments += [quote(segment, safe="") for segment in value.split("/") if segment]
    return f"https://{page.section.host}/{'/'.join(segments)}/"


@LAW_SETTINGS
@given(page_addresses(), st.booleans())
def test_an_address_that_was_written_reads_as_it_was(address: ProductPage, is_absolute: bool) -> None:

    assert (
        urls.parse_page_url(format_page_url(address, include_default_locale=is_absolute), [ASPOSE_PROFILE]) == address
    )


@LAW_SETTINGS
@given(st.text() | st.text().map(lambda text: "https://docs.aspose.org/" + quote(text)))
def test_any_text_is_read_or_refused_with_one_of_two_codes(url: str) -> None:
    try:
        urls.parse_page_url(url, [ASPOSE_PROFILE])
    except ToolError as error:
        assert error.code in (ErrorCode.INVALID_URL, ErrorCode.UNSUPPORTED_SITE)  # noqa: PT017


def test_the_address_of_a_page_in_the_plan_is_one_that_is_read() -> None:
    place = {"layout": "v2", "family": "3d", "platform": "python"}
    for section in ASPOSE_PROFILE.sections:
        for locale in ("en", "de"):
            path = ASPOSE_PROFILE.build_page_url(section.name, "_index", locale=locale, **place)

            read_back = urls.parse_page_url(f"https://{section.host}{path}", [ASPOSE_PROFILE])

            assert (read_back.section, read_back.locale) == (section, locale)


@pytest.mark.parametrize(
    ("name", "expected_names"),
    [
        ("Aspose.3D-for-Python-via-.NET", NameMatch("3d", "python")),
        ("Aspose.3D-for-.NET", NameMatch("3d", "dotnet")),
        ("Aspose.Words-for-C++", NameMatch("words", "cpp")),
        ("Aspose.Cells-FOSS-for-Java", NameMatch("cells", "java")),
        ("aspose-barcode-foss-go", NameMatch("barcode", "go")),
        ("ASPOSE-BARCODE-FOSS-GO", NameMatch("barcode", "go")),
        ("Aspose.Cells-for-Node.js-via-Java", NameMatch("cells", "javascript")),
        ("aspose-unknown-foss-go", NameMatch()),
        ("aspose-3d-foss-cobol", NameMatch()),
        ("requests", NameMatch()),
    ],
)
def test_the_name_of_a_repository_follows_the_convention_or_says_nothing(name: str, expected_names: NameMatch) -> None:
    assert urls.match_name(ASPOSE_PROFILE.repositories.names, name, ASPOSE_PROFILE) == expected_names


@requirement("e:repo:invalid-url")
@pytest.mark.parametrize(
    "url",
    [
        "http://github.com/o/n",
        "https://gitlab.com/o/n",
        "https://github.com/o",
        "https://github.com/o/n/tree/main",
        "https://github.com/o/n?x=1",
        "https://github.com/o/n#readme",
        "https://github.com/o/..",
        "https://github.com/../n",
        "https://user@github.com/o/n",
        "https://github.com:22/o/n",
        "git@github.com:o/n.git",
        "file:///o/n",
        "/o/n",
        "https://github.com/o/n%2fm",
        "https://github.com/o/.git",
        "-o/n",
    ],
)
def test_only_the_plain_address_of_a_github_repository_is_one(url: str) -> None:
    with pytest.raises(ToolError) as caught:
        urls.parse_repository_url(url, ASPOSE_PROFILE)

    assert caught.value.code is ErrorCode.INVALID_URL


@pytest.mark.parametrize(
    ("url", "quoted", "reason"),
    [
        ("https://github.com/o/n?x=1", "'https://github.com/o/n?...'", "it has a query (after ?)"),
        ("https://github.com/o/n#readme", "'https://github.com/o/n#...'", "it has a fragment (after #)"),
        ("https://me@github.com/o/n", "'https://...@github.com/o/n'", "it has a user before the host"),
        ("https://github.com:22/o/n", "'https://github.com:22/o/n'", "it has a port"),
        ("http://github.com/o/n", "'http://github.com/o/n'", "it does not begin with https://"),
        ("https://gitlab.com/o/n", "'https://gitlab.com/o/n'", "its host is gitlab.com"),
        ("https://github.com/o/n/tree", "'https://github.com/o/n/tree'", "its path is not owner/name"),
    ],
)
def test_a_refused_address_is_quoted_as_it_was_sent_with_what_is_wrong(url: str, quoted: str, reason: str) -> None:
    with pytest.raises(ToolError) as caught:
        urls.parse_repository_url(url, ASPOSE_PROFILE)

    assert caught.value.message == f"{quoted} is not the address of a repository on github.com: {reason}"


@pytest.mark.parametrize(
    "url",
    [
        "https://me:hunter2@github.com/o/n",
        "https://github.com/o/n?token=hunter2",
        "https://github.com/o/n#hunter2",
        "ftp://hunter2@github.com/o/n",
        "https://a@b:hunter2@[github.com/o/n",
    ],
)
def test_a_refusal_does_not_repeat_what_may_be_a_secret(url: str) -> None:
    with pytest.raises(ToolError) as repository:
        urls.parse_repository_url(url, ASPOSE_PROFILE)
    with pytest.raises(ToolError) as page:
        urls.parse_page_url(url, [ASPOSE_PROFILE])

    assert "hunter2" not in str(repository.value) + str(page.value)


@pytest.mark.parametrize(
    "url",
    ["https://github.com/o/n", "https://github.com/o/n/", "https://GitHub.com/o/n.git"],
)
def test_a_repository_has_one_address_however_it_is_written(url: str) -> None:
    assert urls.parse_repository_url(url, ASPOSE_PROFILE).url == "https://github.com/o/n"


def test_every_registered_product_is_one_of_the_profile_and_registered_once() -> None:
    products = tomllib.loads((ASPOSE_PROFILE.folder / "registry.toml").read_text())["product"]
    keys = [(product["family"], product["platform"]) for product in products]

    assert len(set(keys)) == len(keys) > 0
    assert {family for family, _ in keys} <= {family.name for family in ASPOSE_PROFILE.families.known}
    assert {platform for _, platform in keys} <= {platform.name for platform in ASPOSE_PROFILE.platforms}
    for product in products:
        repository = urls.parse_repository_url(product["repo_url"], ASPOSE_PROFILE)
        assert repository.url == product["repo_url"]
        assert repository.owner == f"aspose-{product['family']}-foss"


def test_a_page_in_another_language_is_accepted_where_the_profile_has_its_templates(tmp_path: Path) -> None:
    copytree(ASPOSE_PROFILE.folder, tmp_path / "aspose")
    url = "https://products.aspose.org/3d/de/python/"
    settings = make_settings(launch_profiles=(tmp_path,))

    with pytest.raises(ToolError) as caught:
        derive.describe_page_config(url, settings)
    (tmp_path / "aspose/templates/de").mkdir(parents=True)
    derived = derive.describe_page_config(url, settings)

    assert caught.value.code is ErrorCode.INVALID_URL
    assert derived["locale"] == "de"
