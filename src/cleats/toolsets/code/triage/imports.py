"""By which names code refers to a package: what it imports is not always what is installed."""

from collections.abc import Mapping
from typing import Final

_PYTHON: Final[Mapping[str, tuple[str, ...]]] = {
    "pyyaml": ("yaml",),
    "pillow": ("PIL",),
    "beautifulsoup4": ("bs4",),
    "scikit-learn": ("sklearn",),
    "scikit-image": ("skimage",),
    "opencv-python": ("cv2",),
    "python-dateutil": ("dateutil",),
    "python-dotenv": ("dotenv",),
    "python-jose": ("jose",),
    "python-multipart": ("multipart", "python_multipart"),
    "pyjwt": ("jwt",),
    "pycryptodome": ("Crypto",),
    "pycrypto": ("Crypto",),
    "pyopenssl": ("OpenSSL",),
    "protobuf": ("google.protobuf",),
    "djangorestframework": ("rest_framework",),
    "mysqlclient": ("MySQLdb",),
    "psycopg2-binary": ("psycopg2",),
    "gitpython": ("git",),
    "attrs": ("attr", "attrs"),
    "msgpack-python": ("msgpack",),
    "ruamel-yaml": ("ruamel.yaml",),
    "setuptools": ("setuptools", "pkg_resources"),
    "grpcio": ("grpc",),
    "dnspython": ("dns",),
    "websocket-client": ("websocket",),
}
"""Packages of PyPI whose modules are called otherwise; the others by their name with `_`."""


def names(package: str, ecosystem: str) -> list[str]:
    """The modules that code would import from a package."""
    if not package:
        return []
    match ecosystem:
        case "pypi":
            plain = package.lower().replace("_", "-").replace(".", "-")
            return list(_PYTHON.get(plain) or (package.replace("-", "_").lower(),))
        case "cargo":
            return [package.replace("-", "_")]
        case "maven":
            group = package.partition(":")[0]
            return [group] if "." in group else []
        case "rubygems":
            return list(dict.fromkeys((package, package.replace("-", "/"))))
        case _:
            return [package]


def unscoped(package: str) -> str:
    """The last part of a name: of `@scope/name`, `group:artifact` and `host/owner/name`."""
    return package.replace(":", "/").rsplit("/", 1)[-1]
