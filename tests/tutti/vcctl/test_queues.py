"""`vcctl queue`, as `tutti` has it, at an embedded API server."""

import json

import pytest

from tests.api_suite.client import Client
from tests.tutti.conftest import Typed

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"

pytestmark = pytest.mark.integration


async def test_a_queues_groups_are_counted_by_phase(typed: Typed, cluster_api: Client) -> None:
    assert (
        await typed("queue", "create", "-n", "q1", "-w", "3", "--parent", "root")
    ).exit_code == 0
    for index, phase in enumerate(["Running", "Running", "Inqueue", ""]):
        group = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": f"g{index}"},
            "spec": {"queue": "q1"},
            "status": {"phase": phase} if phase else {},
        }
        await cluster_api.create(GROUPS, group)
    await cluster_api.patch(f"{QUEUES}/q1/status", {"status": {"state": "Open"}})
    expected = (
        f"{'Name':25}Weight  State   Parent  Inqueue Pending Running Unknown Completed\n"
        f"{'q1':25}3       Open    root    1       1       2       0       0       \n"
    )
    assert (await typed("queue", "get", "-n", "q1")).output == expected
    assert (await typed("queue", "list")).output == expected
    whole = json.loads((await typed("queue", "get", "q1", "-o", "json")).output)
    assert whole["spec"]["weight"] == 3


@pytest.mark.parametrize(("verb", "action"), [("open", "OpenQueue"), ("close", "CloseQueue")])
async def test_opening_and_closing_is_ordered_by_a_command_in_default(
    typed: Typed, cluster_api: Client, verb: str, action: str
) -> None:
    await typed("queue", "create", "-n", "q1")
    done = await typed("queue", "operate", "-n", "q1", "-a", verb)
    assert done.exit_code == 0, done.output
    (command,) = (await cluster_api.get(COMMANDS)).body["items"]
    assert command["action"] == action
    assert command["target"]["kind"] == "Queue"
    assert command["target"]["name"] == "q1"
    assert command["metadata"]["generateName"] == f"q1-{action.lower()}-"


async def test_a_queue_that_is_created_closed_is_closed_by_a_command(
    typed: Typed, cluster_api: Client
) -> None:
    await typed("queue", "create", "-n", "q1", "-S", "Closed")
    (command,) = (await cluster_api.get(COMMANDS)).body["items"]
    assert command["action"] == "CloseQueue"


async def test_weights_are_changed_and_queues_deleted(typed: Typed, cluster_api: Client) -> None:
    await typed("queue", "create", "-n", "q1")
    assert (await typed("queue", "operate", "q1", "-a", "update", "-w", "7")).exit_code == 0
    assert (await cluster_api.get(f"{QUEUES}/q1")).body["spec"]["weight"] == 7
    assert (await typed("queue", "delete", "-n", "q1")).exit_code == 0
    assert await cluster_api.names(QUEUES) == []


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["operate", "-a", "open"], "queue name is mandatory"),
        (["operate", "-n", "q1"], "--action is missing: must be one of open, close, update"),
        (["operate", "-n", "q1", "-a", "shut"], "--action shut: must be one of open, close"),
        (["operate", "-n", "q1", "-a", "update"], "--weight must be given to update q1"),
        (["get", "-n", "none"], "there is no queue 'none'"),
    ],
)
async def test_what_cannot_be_done_to_a_queue_is_refused_with_the_rule(
    typed: Typed, words: list[str], reported: str
) -> None:
    done = await typed("queue", *words)
    assert done.exit_code == 2
    assert reported in done.stderr
