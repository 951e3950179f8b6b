"""The entry point of the packer process."""

from cleats.system.worker_process import run_task
from cleats.toolsets.code.maintenance.packing import PackingOrder, execute_order

run_task(PackingOrder, execute_order)
