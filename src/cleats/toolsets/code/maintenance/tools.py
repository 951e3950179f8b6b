"""The maintenance tools; `tools.json` declares them."""

from pathlib import Path

from cleats.contract.tools import Tool
from cleats.system.tool_tables import ToolTable
from cleats.toolsets.code.maintenance.bootstrap import BootstrapTool
from cleats.toolsets.code.maintenance.context import MaintenanceEnvironment
from cleats.toolsets.code.maintenance.removal import RemovalTools
from cleats.toolsets.code.maintenance.report_artifacts import InventoryTool
from cleats.toolsets.code.maintenance.show import ShowTool
from cleats.toolsets.code.maintenance.sqlite import SqliteTools
from cleats.toolsets.code.maintenance.status import ConfigurationTool, WorkspaceTool


def create_maintenance_tools(environment: MaintenanceEnvironment) -> tuple[Tool, ...]:
    """Return all maintenance tools over the indexes of this machine."""
    sqlite_tools, removal_tools = SqliteTools(environment), RemovalTools(environment)
    handlers = {
        "show_file": ShowTool(environment).show,
        "config_status": ConfigurationTool(environment).report_status,
        "report_artifacts": InventoryTool(environment).report,
        "build_sqlite_index": sqlite_tools.build,
        "compact_sqlite_index": sqlite_tools.compact,
        "cache_gc": removal_tools.collect,
        "clean_artifacts": removal_tools.clean,
        "bootstrap": BootstrapTool(environment).run,
        "workspace_status": WorkspaceTool(environment).report_status,
    }
    return ToolTable(Path(__file__).parent).make_tools(handlers)
