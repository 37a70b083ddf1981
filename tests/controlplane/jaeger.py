"""A real Jaeger, built from its Go module: takes OTLP, keeps traces in memory, answers over HTTP.

The module replaces one of its dependencies, which `go install` refuses: so it is built in a copy of
its own folder, with its own go.sum. Its pages are not in the module; its API is.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp

from tests.controlplane.go_builds import GoTool, ensure_built
from tests.controlplane.processes import Component, ComponentError, ReservedPort
from tests.support.waiting import eventually

MODULE: Final = "github.com/jaegertracing/jaeger"
#: The newest in the Go module registry; its cmd/jaeger is the second generation.
VERSION: Final = "v1.76.0"
#: Of the module's content, as `go mod download` reports it.
CHECKSUM: Final = "h1:sWCOOF1dr+NL0PLil7mFo3BqqQL8k4WiM7aguFbc14g="

_HOST: Final = "127.0.0.1"
#: Traces kept; a test makes a few dozen.
_TRACES_MAX: Final = 10_000


def ensure_jaeger(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the executable, building it first if no cache has it: minutes, once.

    Raises:
        BinariesError: The build failed, or the registry's module is not the one that was pinned.
    """
    return ensure_built(f"jaeger-{VERSION}", f"Jaeger {VERSION}", _build, environ) / "jaeger"


def _build(go: GoTool, made: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        go.copy_pinned(MODULE, VERSION, CHECKSUM, source)
        go.build(source, "./cmd/jaeger", made)


class Jaeger:
    """A running Jaeger: where to send spans, and what its HTTP API answers."""

    def __init__(self, otlp: str, api: str, session: aiohttp.ClientSession) -> None:
        #: OTLP over HTTP.
        self.otlp = otlp
        #: Root of the query API, and of the links that people follow.
        self.api = api
        self._session = session

    async def trace(self, trace_id: str) -> dict[str, Any] | None:
        """Return a trace as the API has it (`spans`, `processes`); None while it has none."""
        async with self._session.get(f"{self.api}/api/traces/{trace_id}") as answer:
            if answer.status == 404:
                return None
            answer.raise_for_status()
            found = await answer.json()
        return dict(found["data"][0]) if found["data"] else None

    async def traces(self, service: str, **tags: str) -> list[dict[str, Any]]:
        """All traces of the last hour in which this service has a span with these tags."""
        wanted = {"service": service, "lookback": "1h", "limit": "1000"}
        if tags:
            wanted["tags"] = json.dumps(tags)
        async with self._session.get(f"{self.api}/api/traces?{urlencode(wanted)}") as answer:
            answer.raise_for_status()
            return list((await answer.json())["data"])

    async def services(self) -> set[str]:
        """Names of all that have sent a span."""
        async with self._session.get(f"{self.api}/api/services") as answer:
            answer.raise_for_status()
            return set((await answer.json())["data"] or ())


@asynccontextmanager
async def running_jaeger(program: Path, folder: Path) -> AsyncIterator[Jaeger]:
    """Run it on free ports of 127.0.0.1, all in memory, until the block is left.

    Raises:
        ComponentError: It ended instead of answering.
    """
    ports = {name: ReservedPort() for name in ("otlp", "query", "query_grpc", "health")}
    numbers = {name: port.number for name, port in ports.items()}
    component = await asyncio.to_thread(_component, program, folder, numbers)
    for port in ports.values():
        port.release()
    try:
        await asyncio.to_thread(component.start)
        async with aiohttp.ClientSession() as session:
            jaeger = Jaeger(
                f"http://{_HOST}:{numbers['otlp']}", f"http://{_HOST}:{numbers['query']}", session
            )

            async def answers() -> bool:
                if not component.is_running:
                    raise ComponentError(f"jaeger ended:\n{component.log_tail()}")
                try:
                    await jaeger.services()
                except aiohttp.ClientError:
                    return False
                return True

            await eventually(answers, timeout_s=30.0, because="Jaeger answers")
            yield jaeger
    finally:
        await asyncio.to_thread(component.stop)


def _component(program: Path, folder: Path, ports: Mapping[str, int]) -> Component:
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "jaeger.json"
    config.write_text(json.dumps(configuration(_HOST, ports)))
    # Otherwise it sends spans of itself to a default endpoint, and takes 10 s to end.
    command = ["/usr/bin/env", "OTEL_TRACES_SAMPLER=always_off", str(program), f"--config={config}"]
    return Component("jaeger", command, folder / "jaeger.log")


def configuration(host: str, ports: Mapping[str, int]) -> dict[str, Any]:
    """One process that receives, stores in memory and answers, at the ports `otlp`, `query`,
    `query_grpc` and `health`.
    """
    store = "memory"
    return {
        "service": {
            "extensions": ["jaeger_storage", "jaeger_query", "healthcheckv2"],
            "pipelines": {
                "traces": {
                    "receivers": ["otlp"],
                    "processors": ["batch"],
                    "exporters": ["jaeger_storage_exporter"],
                }
            },
            "telemetry": {"metrics": {"level": "none"}},
        },
        "extensions": {
            "healthcheckv2": {
                "use_v2": True,
                "http": {"endpoint": f"{host}:{ports['health']}"},
            },
            "jaeger_storage": {"backends": {store: {"memory": {"max_traces": _TRACES_MAX}}}},
            "jaeger_query": {
                "storage": {"traces": store},
                "http": {"endpoint": f"{host}:{ports['query']}"},
                "grpc": {"endpoint": f"{host}:{ports['query_grpc']}"},
            },
        },
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"{host}:{ports['otlp']}"}}}},
        "processors": {"batch": {"timeout": "100ms"}},
        "exporters": {"jaeger_storage_exporter": {"trace_storage": store}},
    }
