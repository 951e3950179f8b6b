"""The tools of upkeep."""

from cleats.contract.tools import Tool
from cleats.toolsets.code.upkeep.bootstrap import BootstrapTool
from cleats.toolsets.code.upkeep.configuration import ConfigurationTool
from cleats.toolsets.code.upkeep.inventory import InventoryTool
from cleats.toolsets.code.upkeep.removal import RemovalTools
from cleats.toolsets.code.upkeep.show import ShowTool
from cleats.toolsets.code.upkeep.site import Site
from cleats.toolsets.code.upkeep.sqlite import SqliteTools
from cleats.toolsets.code.upkeep.workspace_tool import WorkspaceTool


def tools(site: Site) -> tuple[Tool, ...]:
    """All of them, over the indexes of this machine."""
    return (
        *ShowTool(site).tools(),
        *ConfigurationTool(site).tools(),
        *InventoryTool(site).tools(),
        *SqliteTools(site).tools(),
        *RemovalTools(site).tools(),
        *BootstrapTool(site).tools(),
        *WorkspaceTool(site).tools(),
    )
