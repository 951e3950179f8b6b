"""The preview of a site: the server of its own generator, on this machine only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.site import detection, programs
from cleats.toolsets.launch.site.kinds import PreviewCommand, PreviewRequest
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree


def plan_preview(config: Mapping[str, Any], root: Path, settings: Mapping[str, Any], port: int) -> PreviewCommand:
    """Plan the server for the site of a run.

    Raises:
        ToolError: TOOLCHAIN_MISSING, the generator is not installed; ILLEGAL_STATE, the site has no configuration
            or must not be built.
    """
    site = RunFolder(root).site
    tree = CheckoutTree(site)
    profile = detection.choose_profile(config, tree, settings.get("profiles", ()))
    kind = detection.get_site_kind(profile)
    if not programs.locate_program(kind.name, settings):
        hint = programs.format_install_hint(kind.name)
        raise ToolError(ErrorCode.TOOLCHAIN_MISSING, f"{kind.name} is not installed.", hint=hint)
    config_path, names = detection.find_site_config(config, profile, tree)
    if not config_path:
        raise ToolError(ErrorCode.ILLEGAL_STATE, f"The site has none of {', '.join(names)}.")
    scratch = root / "work" / "preview"
    return kind.plan_server(
        PreviewRequest(
            site=site, profile=profile, config_path=config_path, scratch=scratch, settings=settings, port=port
        )
    )
