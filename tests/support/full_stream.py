"""A stream that takes nothing more, as one whose storage is full."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from shared.bus.connection import Bus
from shared.bus.jetstream_api import ApiAnswer


@asynccontextmanager
async def a_full_stream(bus: Bus, stream: str) -> AsyncIterator[None]:
    """Let `stream` refuse every further message until the block is left."""
    answer = await bus.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout_s=10.0)
    info: dict[str, Any] = json.loads(answer.payload)
    config = info["config"]
    full = {**config, "discard": "new", "max_bytes": max(1, info["state"]["bytes"])}
    await bus.api(f"STREAM.UPDATE.{stream}", full, ApiAnswer)
    try:
        yield
    finally:
        await bus.api(f"STREAM.UPDATE.{stream}", config, ApiAnswer)
