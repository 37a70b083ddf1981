"""The tools over the SDK's own client, against the API service's server. The SDK is not in .venv,
because only users of assistants need it; these tests install it in the cache.
"""

import importlib
import json
import sys
from typing import Any

import pytest

from shared.contracts.questions import FitAnswer, LedgerAnswer, LedgerQueue
from tests.services.api.serving import Serving
from tests.support.packages import ROOT, make_importable
from tests.tutti.client.conftest import JOB, Users, serving, users
from tutti import AsyncClient

#: Fixtures.
__all__ = ["serving", "users"]

#: Installing the SDK takes most of a minute.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def mcp() -> Any:
    make_importable("mcp", ROOT / "requirements" / "mcp.lock")
    return importlib.import_module("mcp")


def text_of(found: Any) -> str:
    """What an assistant reads."""
    return "".join(one.text for one in found.content)


async def test_all_tools_are_read_only_and_described(mcp: Any, users: Users) -> None:
    from tutti.mcp.server import build_server

    async with AsyncClient(kubeconfig=users()) as client, mcp.Client(build_server(client)) as host:
        tools = {one.name: one for one in (await host.list_tools()).tools}
        assert sorted(tools) == ["fits", "gangs", "queues", "why"]
        for one in tools.values():
            assert one.annotations.read_only_hint
            assert one.description
        assert tools["why"].input_schema["required"] == ["reference"]


async def test_tools_answer_with_the_users_rights(mcp: Any, users: Users, serving: Serving) -> None:
    from tutti.mcp.server import build_server

    serving.planner.queues = LedgerAnswer(queues=(LedgerQueue(name="research", exists=True),))
    serving.planner.fit = FitAnswer(fits=False, ever=True, sentence="1 of 2 pods fit")
    async with (
        AsyncClient(kubeconfig=users("of-b")) as client,
        mcp.Client(build_server(client)) as host,
    ):
        found = await host.call_tool("gangs", {"all_namespaces": True, "limit": 1})
        assert not found.is_error
        assert found.structured_content["count"] == 2
        (first,) = found.structured_content["items"]
        assert (first["metadata"]["namespace"], first["metadata"]["name"]) == ("b", "first")
        assert json.loads(text_of(found)) == found.structured_content
        waiting = await host.call_tool("gangs", {"queue": "research"})
        assert waiting.structured_content["items"][0]["status"]["pending"]["ahead"]["count"] == 2
        queues = await host.call_tool("queues", {})
        assert queues.structured_content["items"][0]["metadata"]["name"] == "research"
        fits = await host.call_tool("fits", {"manifests": JOB})
        assert fits.structured_content["gangs"][0]["message"] == "1 of 2 pods fit"

        refused = await host.call_tool("gangs", {"namespace": "a"})
        assert refused.is_error
        assert "not allowed: user of-b cannot list pods in the namespace a" in text_of(refused)
        no_file = await host.call_tool("fits", {"manifests": "/etc/passwd"})
        assert no_file.is_error
        assert "must be an object with a kind" in text_of(no_file)
        too_many = await host.call_tool("gangs", {"limit": 501})
        assert too_many.is_error


async def test_the_command_speaks_over_standard_input_and_output(mcp: Any, users: Users) -> None:
    from mcp.client.stdio import StdioServerParameters

    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tutti.cli", "mcp", "--kubeconfig", str(users()), "-n", "a"],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        cwd=str(ROOT),
    )
    async with mcp.Client(started) as host:
        found = await host.call_tool("gangs", {})
        assert [one["metadata"]["name"] for one in found.structured_content["items"]] == ["x"]
