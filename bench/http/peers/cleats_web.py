"""Cleats over HTTP with its default settings: every call has its span and its log line."""

import json
import os

from bench.http.peers.tools import prepare_toolsets
from cleats import app
from cleats.runtime.background_writer import log_to_stderr
from cleats.runtime.server_status import ServerStatus
from cleats.transports.http.service import base_url, bind_socket
from cleats.transports.stdio import claim_stdio

if __name__ == "__main__":
    with claim_stdio() as (_, out), bind_socket("127.0.0.1", 0) as listener:
        log_to_stderr("info")
        vitals = ServerStatus()
        settings, toolsets = prepare_toolsets(vitals)
        line = json.dumps({"baseUrl": base_url(listener)}).encode() + b"\n"
        app.run_server(app.serve_http, settings, toolsets, vitals, listener, lambda: os.write(out, line) and None)
