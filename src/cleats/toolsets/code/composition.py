"""The composition of the code toolset: local indexes with the remote indexes of the settings."""

from collections.abc import Sequence

from cleats.settings import Settings
from cleats.toolsets.code.index.service import Indexes, RemoteIndexPort
from cleats.toolsets.code.repository import Repository


def open_indexes(settings: Settings) -> Indexes:
    """Return the indexes of this machine; those elsewhere are opened when one is first asked for."""
    return Indexes(settings, lambda: open_remote_indexes(settings))


def open_remote_indexes(settings: Settings) -> Sequence[RemoteIndexPort]:
    """Open the indexes in shared storage and in OpenSearch that the settings name.

    Raises:
        SettingError: an address or a name is invalid.
    """
    remotes: list[RemoteIndexPort] = []
    if settings.code.index_url:
        from cleats.toolsets.code.sharing.shared_index import open_shared_index  # noqa: PLC0415 - few have one

        remotes.append(open_shared_index(settings, _find_project(settings)))
    if settings.code.opensearch_url:
        from cleats.toolsets.code.sharing.opensearch.remote_index import open_remote_index  # noqa: PLC0415 - few have one

        remotes.append(open_remote_index(settings, _find_project(settings)))
    return remotes


def _find_project(settings: Settings) -> Repository:
    return Repository.from_path(None, settings.project_dir)
