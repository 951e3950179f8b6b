"""A machine that locks a run in the database and goes on holding it: `lock_holder URL RUN`."""

import sys
import time

from cleats.system import postgres

with postgres.open_connection(sys.argv[1]) as connection:
    connection.execute("SELECT owner FROM cleats_runs WHERE run_id = %s FOR UPDATE", (sys.argv[2],))
    print("locked", flush=True)  # noqa: T201 - the test waits for it
    time.sleep(3600)  # until it is killed
