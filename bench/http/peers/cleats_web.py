"""Cleats over HTTP with its default settings: every call has its span and its log line."""

import json
import os

from bench.http.peers.tools import prepared
from cleats import app
from cleats.runtime.journal import log_to_stderr
from cleats.runtime.vitals import Vitals
from cleats.transports.http.listening import base_url, bind
from cleats.transports.stdio import claimed

if __name__ == "__main__":
    with claimed() as (_, out), bind("127.0.0.1", 0) as listener:
        log_to_stderr("info")
        vitals = Vitals()
        settings, served = prepared(vitals)
        line = json.dumps({"baseUrl": base_url(listener)}).encode() + b"\n"
        app.run(
            app.serve_http, settings, served, vitals, listener, lambda: os.write(out, line) and None
        )
