"""The tools: what the Python client reads, as data that an assistant can use.

None of them changes anything. Answers are bounded, and what a user may not see is not in them: the
API and the API server answer with the user's rights.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from shared.kube.errors import KubeError
from tutti.api.failures import Refusal, explained
from tutti.api.output import report_data
from tutti.client.asynchronous import AsyncClient

#: Gangs and queues in one answer, without and with a limit of the caller.
_ITEMS: Final = 50
_ITEMS_MAX: Final = 500
#: Manifests of one question, in characters: what the API takes.
_TEXT_CHARACTERS_MAX: Final = 1_000_000

_INSTRUCTIONS: Final = (
    "Tutti schedules gangs: pods that start together or not at all. Ask `why` about one workload "
    "that waits, `gangs` and `queues` for an overview, `fits` whether manifests would fit now. "
    "Nothing here changes the cluster."
)
_READ_ONLY: Final = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Namespace = Annotated[
    str, Field(description="Namespace; empty: the one of the user's context.", max_length=253)
]
Limit = Annotated[int, Field(description="Objects in the answer.", ge=1, le=_ITEMS_MAX)]


class Tools:
    """The tools of one client."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def why(
        self,
        reference: Annotated[
            str,
            Field(
                description="KIND/NAME, such as vcjob/train or pod/train-0, or NAME of a workload.",
                max_length=600,
            ),
        ],
        namespace: Namespace = "",
    ) -> dict[str, Any]:
        """Explain why a pod, a group of pods or a job waits, in a sentence with the facts."""
        answer = await _answered(self._client.why(reference, namespace=namespace))
        return _data(answer)

    async def fits(
        self,
        # A text is never read as a path: an assistant reads no files here.
        manifests: Annotated[
            str,
            Field(
                description="Kubernetes manifests as YAML or JSON.",
                max_length=_TEXT_CHARACTERS_MAX,
            ),
        ],
        namespace: Namespace = "",
    ) -> dict[str, Any]:
        """Report whether the gangs of manifests would be placed now, where, and otherwise why not.
        Nothing is created.
        """
        return _data(await _answered(self._client.fits(manifests, namespace=namespace)))

    async def queues(
        self,
        name: Annotated[
            str, Field(description="Name of one queue; empty: all.", max_length=253)
        ] = "",
        limit: Limit = _ITEMS,
    ) -> dict[str, Any]:
        """List queues: what they use, deserve and wait for."""
        if name:
            return _listed([await _answered(self._client.queue(name))], limit)
        return _listed(await _answered(self._client.queues()), limit)

    async def gangs(
        self,
        namespace: Namespace = "",
        all_namespaces: Annotated[
            bool, Field(description="Of all namespaces that the user may see.")
        ] = False,
        phase: Annotated[
            str,
            Field(
                description="Pending, Inqueue, Starting, Running, Unknown, Completed; empty: any.",
                max_length=63,
            ),
        ] = "",
        queue: Annotated[str, Field(description="Only gangs of this queue.", max_length=253)] = "",
        limit: Limit = _ITEMS,
    ) -> dict[str, Any]:
        """List gangs: phase, queue, members, placement, and why they wait."""
        gangs = await _answered(
            self._client.gangs(
                namespace=namespace, all_namespaces=all_namespaces, phase=phase, queue=queue
            )
        )
        return _listed(gangs, limit)


def build_server(client: AsyncClient) -> MCPServer[Any]:
    """A server with the tools of a client, which it uses while it runs."""
    server: MCPServer[Any] = MCPServer("tutti", instructions=_INSTRUCTIONS, log_level="WARNING")
    tools = Tools(client)
    for tool in (tools.why, tools.fits, tools.queues, tools.gangs):
        _add(server, tool)
    return server


def _add(server: MCPServer[Any], tool: Callable[..., Awaitable[dict[str, Any]]]) -> None:
    server.add_tool(tool, annotations=_READ_ONLY, structured_output=True)


async def _answered(question: Awaitable[Any]) -> Any:
    """The answer; an expected failure is one that the assistant reads, in a sentence."""
    try:
        return await question
    except (KubeError, Refusal) as error:
        raise ToolError(explained(error)) from error


def _data(answer: object) -> dict[str, Any]:
    data: dict[str, Any] = report_data(answer)
    return data


def _listed(items: list[Any], limit: int) -> dict[str, Any]:
    return {"count": len(items), "items": report_data(items[:limit])}
