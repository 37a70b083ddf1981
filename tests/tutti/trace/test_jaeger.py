"""What is taken from Jaeger's answers; a real Jaeger's are in `tests/tracing/test_jaeger`."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from shared.telemetry.tracing import jaeger_trace_url
from tutti.trace.command import JaegerError, exported_lines

TRACES = {
    "data": [
        {
            "traceID": "a",
            "spans": [
                {
                    "operationName": "make pods",
                    "startTime": 1_000_000,
                    "duration": 20_000,
                    "processID": "p1",
                    "tags": [
                        {"key": "pods", "type": "int64", "value": 3},
                        {"key": "error", "type": "bool", "value": True},
                        {"key": "otel.status_description", "type": "string", "value": "quota"},
                    ],
                },
                {"operationName": "bind", "startTime": 1, "duration": 1, "processID": "p1"},
            ],
            "processes": {"p1": {"serviceName": "tutti-controller", "tags": []}},
        }
    ]
}


@pytest.fixture
async def address() -> AsyncIterator[str]:
    """Knows trace a; of trace b it answers nonsense, of c an error of its own."""

    async def answer(request: web.Request) -> web.Response:
        match request.match_info["trace"]:
            case "a":
                return web.json_response(TRACES)
            case "b":
                return web.Response(text="<html>")
            case "c":
                return web.Response(status=500)
            case _:
                return web.json_response({"data": None, "errors": [{"code": 404}]}, status=404)

    app = web.Application()
    app.router.add_get("/api/traces/{trace}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_only_spans_that_the_streams_do_not_have_are_taken(address: str) -> None:
    (line,) = await exported_lines(f"{address}/", ["a", "unknown"])
    assert (line.at_ms, line.what, line.took_ms) == (1_020, "make pods", 20)
    assert (line.detail, line.failed) == ("3, by controller, quota", True)


@pytest.mark.parametrize(("trace", "said"), [("b", "is not Jaeger"), ("c", "answers 500")])
async def test_what_is_no_answer_is_an_error(address: str, trace: str, said: str) -> None:
    with pytest.raises(JaegerError, match=said):
        await exported_lines(address, [trace])


async def test_one_that_is_not_there_is_an_error() -> None:
    with pytest.raises(JaegerError, match=r"127\.0\.0\.1:1/"):
        await exported_lines("http://127.0.0.1:1", ["a"])


def test_a_link_leads_to_the_trace() -> None:
    assert jaeger_trace_url("http://j:16686/", "a") == "http://j:16686/trace/a"
