"""The minimal Starlette application: one route, one object, on the same HTTP server as Cleats."""

import json
import os

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from cleats.transports.http.service import base_url, bind_socket


async def health(_request: Request) -> JSONResponse:
    return JSONResponse({"ok": True, "result": {"uptimeMs": 1}})


if __name__ == "__main__":
    listener = bind_socket("127.0.0.1", 0)
    os.write(1, json.dumps({"baseUrl": base_url(listener)}).encode() + b"\n")
    config = uvicorn.Config(
        Starlette(routes=[Route("/health", health)]),
        http="httptools",
        loop="uvloop",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )
    uvicorn.Server(config).run(sockets=[listener])
