"""The preview of a site: the server of its own generator, on this machine only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.contract.errors import ErrorCode, ToolError
from cleats.runtime.installation import format_install_command
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs.storage import RunFolder
from cleats.toolsets.launch.site import hugo_command, programs


@dataclass(frozen=True, slots=True)
class PreviewCommand:
    """A server to start, and the address at which it serves."""

    argv: Sequence[str]
    env: Mapping[str, str]
    address: str


def plan_preview(config: Mapping[str, Any], root: Path, settings: Mapping[str, Any], port: int) -> PreviewCommand:
    """Plan the server for the site of a run.

    Raises:
        ToolError: TOOLCHAIN_MISSING, the generator is not installed; ILLEGAL_STATE, the site has no configuration.
    """
    profile = load_named_profile(config["profile"], settings.get("profiles", ()))
    program = programs.locate_program("hugo", settings)
    if not program:
        hint = programs.INSTALL_HINTS["hugo"].format(command=format_install_command("cleats[launch]"))
        raise ToolError(ErrorCode.TOOLCHAIN_MISSING, "hugo is not installed.", hint=hint)
    site = RunFolder(root).site
    candidates = [
        path
        for section in config["required_sections"]
        for path in profile.list_hugo_configs(section, str(config["family"]))
    ]
    config_path = next((path for path in candidates if (site / path).is_file()), "")
    if not config_path:
        raise ToolError(ErrorCode.ILLEGAL_STATE, f"The site has none of {', '.join(dict.fromkeys(candidates))}.")
    env = hugo_command.build_hugo_environment(root / "work" / "preview", settings.get("git_env", {}))
    arguments = hugo_command.list_server_arguments(site, config_path, profile.site.environment, port)
    return PreviewCommand([program, *arguments], env, f"http://127.0.0.1:{port}/")
