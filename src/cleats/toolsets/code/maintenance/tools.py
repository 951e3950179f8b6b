"""The maintenance tools."""

from cleats.contract.tools import Tool
from cleats.toolsets.code.maintenance.bootstrap import BootstrapTool
from cleats.toolsets.code.maintenance.context import MaintenanceEnvironment
from cleats.toolsets.code.maintenance.removal import RemovalTools
from cleats.toolsets.code.maintenance.report_artifacts import InventoryTool
from cleats.toolsets.code.maintenance.show import ShowTool
from cleats.toolsets.code.maintenance.sqlite import SqliteTools
from cleats.toolsets.code.maintenance.status import ConfigurationTool, WorkspaceTool


def create_maintenance_tools(environment: MaintenanceEnvironment) -> tuple[Tool, ...]:
    """Return all maintenance tools over the indexes of this machine."""
    return (
        *ShowTool(environment).tools(),
        *ConfigurationTool(environment).tools(),
        *InventoryTool(environment).tools(),
        *SqliteTools(environment).tools(),
        *RemovalTools(environment).tools(),
        *BootstrapTool(environment).tools(),
        *WorkspaceTool(environment).tools(),
    )
