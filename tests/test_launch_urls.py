"""Addresses of product pages: what they stand for, and what is no address."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.quickstart import addresses, repositories
from cleats.toolsets.launch.quickstart.addresses import Address
from cleats.toolsets.launch.quickstart.repositories import Repository, Said
from tests.requirements import requirement
from tests.shell import LAW

ASPOSE = model.load("aspose")


def seen(url: str) -> tuple[str, str, str, str, str]:
    found = addresses.read(url, [ASPOSE])
    return found.site, found.family, found.locale, found.platform, found.page


def refusal(url: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        addresses.read(url, [ASPOSE])
    return caught.value


PATTERNS = {
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


@requirement("e:url:patterns")
@pytest.mark.parametrize("url", PATTERNS)
def test_every_pattern_of_the_spec_is_read(url: str) -> None:
    section, *rest = PATTERNS[url]

    assert seen(url) == (f"{section}.aspose.org", *rest)


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
    assert seen(url) == ("products.aspose.org", "3d", "en", "python", "")


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
    assert seen(url)[3] == platform


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
    assert refusal(url).code is ErrorCode.INVALID_URL


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
    error = refusal(url)

    assert error.code is ErrorCode.UNSUPPORTED_SITE
    assert "products.aspose.org" in error.details["hosts"]


def test_a_refusal_says_what_would_do() -> None:
    error = refusal("https://docs.aspose.org/3d/en/cobol/")

    assert "cobol" in error.message
    assert error.details["patterns"] == [
        "https://docs.aspose.org/{family}/{locale?}/{platform}/{page*}/"
    ]
    assert "python" in error.details["platforms"]


families = st.sampled_from([each.name for each in ASPOSE.families.known])
platforms = st.sampled_from([each.name for each in ASPOSE.platforms])
locales = st.sampled_from(ASPOSE.site.locales)
slug = st.text(st.characters(categories=["L", "N"], include_characters="-_ é"), min_size=1).filter(
    lambda text: text.isprintable()
)


@st.composite
def pages(draw: st.DrawFn) -> Address:
    section = draw(st.sampled_from(ASPOSE.sections))
    paged = section.urls[0].endswith("{page*}")
    page = draw(st.lists(slug, max_size=3).map("/".join)) if paged else ""
    return Address(ASPOSE, section, draw(families), draw(platforms), draw(locales), page)


@LAW
@given(pages(), st.booleans())
def test_an_address_that_was_written_reads_as_it_was(address: Address, whole: bool) -> None:

    assert addresses.read(addresses.write(address, whole=whole), [ASPOSE]) == address


@LAW
@given(st.text() | st.text().map(lambda text: "https://docs.aspose.org/" + quote(text)))
def test_any_text_is_read_or_refused_with_one_of_two_codes(url: str) -> None:
    try:
        addresses.read(url, [ASPOSE])
    except ToolError as error:
        assert error.code in (ErrorCode.INVALID_URL, ErrorCode.UNSUPPORTED_SITE)  # noqa: PT017


def test_the_address_of_a_page_in_the_plan_is_one_that_is_read() -> None:
    place = {"layout": "v2", "family": "3d", "platform": "python"}
    for section in ASPOSE.sections:
        for locale in ("en", "de"):
            path = ASPOSE.page_url(section.name, "_index", locale=locale, **place)

            found = addresses.read(f"https://{section.host}{path}", [ASPOSE])

            assert (found.section, found.locale) == (section, locale)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Aspose.3D-for-Python-via-.NET", Said("3d", "python")),
        ("Aspose.3D-for-.NET", Said("3d", "dotnet")),
        ("Aspose.Words-for-C++", Said("words", "cpp")),
        ("Aspose.Cells-FOSS-for-Java", Said("cells", "java")),
        ("aspose-barcode-foss-go", Said("barcode", "go")),
        ("ASPOSE-BARCODE-FOSS-GO", Said("barcode", "go")),
        ("Aspose.Cells-for-Node.js-via-Java", Said("cells", "javascript")),
        ("aspose-unknown-foss-go", Said()),
        ("aspose-3d-foss-cobol", Said()),
        ("requests", Said()),
    ],
)
def test_the_name_of_a_repository_follows_the_convention_or_says_nothing(
    name: str, said: Said
) -> None:
    assert repositories.by_name(Repository("github.com", "o", name), ASPOSE) == said


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
        repositories.read(url, ASPOSE)

    assert caught.value.code is ErrorCode.INVALID_URL


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
        repositories.read(url, ASPOSE)
    with pytest.raises(ToolError) as page:
        addresses.read(url, [ASPOSE])

    assert "hunter2" not in str(repository.value) + str(page.value)


@pytest.mark.parametrize(
    "url",
    ["https://github.com/o/n", "https://github.com/o/n/", "https://GitHub.com/o/n.git"],
)
def test_a_repository_has_one_address_however_it_is_written(url: str) -> None:
    assert repositories.read(url, ASPOSE).url == "https://github.com/o/n"
