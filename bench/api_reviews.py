"""A process that answers reviews in place of an API server, for benchmarks of the API service.

Users are their tokens. Each may list pods in the namespace of its name, `ADMINS` in all.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import uvloop
from aiohttp import web

from bench.child_process import child_process

#: A user has 100 watches at most.
ADMINS: Final = tuple(f"admin-{n}" for n in range(10))


@asynccontextmanager
async def reviews(folder: Path) -> AsyncIterator[Path]:
    """A process that answers reviews only, for the length of the block: its kubeconfig."""
    async with child_process("bench.api_reviews") as process:
        port = int(await process.stdout.readline())
        config = {
            "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "current-context": "x",
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(config))
        yield path


async def _review(request: web.Request) -> web.Response:
    spec = (await request.json())["spec"]
    if "token" in spec:
        user = {"username": spec["token"], "groups": ["system:authenticated"]}
        return web.json_response({"status": {"authenticated": True, "user": user}}, status=201)
    asked = spec["resourceAttributes"]
    own = spec["user"] == asked["namespace"] or spec["user"] in ADMINS
    allowed = own or asked["group"] != ""
    return web.json_response({"status": {"allowed": allowed}}, status=201)


async def _serve() -> None:
    """Print the port, then answer until standard input ends."""
    app = web.Application()
    app.router.add_post("/{path:.*}", _review)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    while await asyncio.to_thread(sys.stdin.readline):
        pass
    await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(_serve())
