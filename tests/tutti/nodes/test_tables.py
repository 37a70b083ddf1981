"""Tables of `tutti nodes` and `tutti queues --shares`."""

import io

from rich.console import Console, RenderableType

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue
from shared.contracts.visibility import Queue
from shared.visible_objects import build_queues
from tests.support.golden import Golden
from tutti.nodes_command import ROWS_MAX, NodeUse, ResourceUse, of_nodes, of_queues


def printed(table: RenderableType) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=160, color_system=None).print(table)
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def built(*queues: LedgerQueue) -> list[Queue]:
    return build_queues(LedgerAnswer(queues=queues), None)


def test_queues_with_the_largest_part_of_their_share_come_first(golden: Golden) -> None:
    def queue(name: str, used: int) -> LedgerQueue:
        amounts = (LedgerAmount(resource="cpu", used=used, wanted=500, deserved=2_000),)
        return LedgerQueue(name=name, exists=True, running=1, waiting=2, outside=1, amounts=amounts)

    limit = LedgerAmount(resource="cpu", used=1_000, ceiling=4_000)
    limited = LedgerQueue(name="limited", exists=True, amounts=(limit,))
    idle = LedgerQueue(name="idle", exists=True)
    lines = printed(of_queues(built(idle, queue("a", 1_000), limited, queue("b", 3_000))))
    assert [line.partition(" ")[0] for line in lines[1:]] == ["b", "a", "limited", "idle"]
    golden(*lines)


def test_nodes_have_a_bar_for_each_resource_that_any_of_them_has(golden: Golden) -> None:
    def use(name: str, *resources: ResourceUse, gangs: tuple[str, ...] = ()) -> NodeUse:
        return NodeUse(name=name, state="Ready", resources=resources, gangs=gangs)

    cpu = ResourceUse(resource="cpu", used=2_000, allocatable=4_000)
    gpu = ResourceUse(resource="nvidia.com/gpu", used=1, allocatable=1)
    pods = ResourceUse(resource="pods", used=3, allocatable=110)
    found = [use("n1", cpu, gpu, pods, gangs=("t/a", "t/b", "t/c")), use("n2", cpu)]
    golden(*printed(of_nodes(found)))
    many = [use(f"n{index}", cpu) for index in range(ROWS_MAX + 5)]
    assert printed(of_nodes(many))[-1] == "and 5 more"


def test_all_figures_are_there_at_eighty_columns() -> None:
    def lines(table: RenderableType) -> list[str]:
        text = io.StringIO()
        Console(file=text, width=80, color_system=None).print(table)
        return text.getvalue().splitlines()

    amounts = (
        LedgerAmount(resource="nvidia.com/gpu", used=1234, wanted=567, deserved=2345),
        LedgerAmount(resource="memory", used=7 << 40, wanted=5 << 38, ceiling=9 << 40),
    )
    name = "research-and-development-of-language-models"
    queue = LedgerQueue(name=name, exists=True, running=120, waiting=34, amounts=amounts)
    shown = lines(of_queues(built(queue), 80))
    assert "research" in shown[1]
    assert all(figure in shown[1] for figure in ("120", "34", "53%", "1234", "2345", "567"))
    assert all(figure in shown[2] for figure in ("78%", "7Ti", "9Ti", "1.25Ti"))

    resources = tuple(
        ResourceUse(resource=resource, used=12, allocatable=64)
        for resource in ("cpu", "memory", "nvidia.com/gpu", "pods")
    )
    node = NodeUse(
        name="ip-10-0-12-34.internal", state="Ready", resources=resources, gangs=("team/train",)
    )
    shown = lines(of_nodes([node], 80))
    assert len(shown) == 2
    assert shown[1].count("12") >= 3
    assert "team/train" in shown[1]
