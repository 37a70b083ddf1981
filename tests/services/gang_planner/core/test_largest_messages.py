"""What users may make as long as the API server allows: every message made of it fits.

The planner cannot undo a decision, and a message that NATS refuses ended it: again after each
restart, for as long as the objects existed.
"""

from typing import Any

import msgspec
import pytest

from services.gang_planner.core.state.decision_sizes import parts_of
from shared.contracts import codec
from shared.contracts.decisions import (
    Checkpoint,
    EvictionDecision,
    GangDecision,
    NoteOpened,
    Victim,
)
from shared.contracts.outcomes import Member
from shared.contracts.provisioning import POD_SETS_MAX
from shared.contracts.subjects import MESSAGE_BYTES_MAX, PAGE_BYTES_MAX
from shared.contracts.verdicts import PodRef, PodSet, Provisioning, Verdict
from shared.model.bounds import POD_RESOURCES_MAX
from shared.model.objects import Pod
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import configured
from tests.services.gang_planner.core.scene import (
    make_group,
    make_node,
    make_pods,
    make_shape,
)

pytestmark = pytest.mark.slow

TINY = make_shape({"cpu": 1})
FULL = make_shape({"cpu": 4000})
HUGE = {"cpu": 1_000_000, "pods": 100_000}
#: The longest name of an object.
NAME_MAX = 253
NODE = "n" * NAME_MAX
#: The limit less the client's reserve for headers.
LIMIT = MESSAGE_BYTES_MAX - 1024


def long_pods(gang: str, count: int, shape: bytes = TINY, **fields: Any) -> list[Pod]:
    """Members with the longest names, in the longest namespace."""
    made = make_pods(gang, count, shape, namespace="s" * 63, **fields)
    return [
        msgspec.structs.replace(
            pod,
            uid=f"{gang[:4]}{index:032d}",
            name=f"{gang}-{index}-".ljust(NAME_MAX, "x"),
        )
        for index, pod in enumerate(made)
    ]


def long_group(name: str, least: int, **fields: Any) -> Any:
    return make_group(name, least, namespace="s" * 63, **fields)


def submit(scene: LoggedScene, name: str, size: int, least: int, **fields: Any) -> list[Pod]:
    pods = long_pods(name, size, **fields)
    scene.put(long_group(name, least), *pods)
    return pods


def assert_sent(scene: LoggedScene) -> None:
    """Every record and verdict so far fits into a message."""
    sent = (*scene.published, *(record for _, record in scene.records))
    assert max(len(codec.encode(one)) for one in sent) <= LIMIT


def roles(count: int) -> list[Pod]:
    """Pods of a gang, each with a role of its own of 253 characters."""
    return [
        msgspec.structs.replace(pod, role=f"{pod.index}-".ljust(NAME_MAX, "r"))
        for pod in make_pods("wide", count, FULL)
    ]


def test_a_gang_with_2800_roles_of_253_characters_gets_a_verdict_that_counts_them() -> None:
    scene = LoggedScene([make_node("n0")])
    scene.put(make_group("wide", 2_800), *roles(2_800))
    scene.settle()
    assert_sent(scene)
    why = scene.verdict("wide").why
    assert why is not None
    assert why.shapes_count == 2_800
    assert 16 < len(why.shapes) < 200
    assert len(codec.encode(why)) < 64 * 1024


def test_missing_roles_are_named_up_to_a_size_and_then_counted() -> None:
    minima = tuple((f"{index}-".ljust(NAME_MAX, "r"), 1) for index in range(2_800))
    scene = LoggedScene([make_node("n0")])
    scene.put(make_group("wide", 2_800, min_task_member=minima), *make_pods("wide", 2_800, FULL))
    scene.settle()
    why = scene.verdict("wide").why
    assert why is not None
    assert why.reason == "NotEnoughPodsOfTask"
    assert why.sentence.startswith("0 of 1 members of 0-rrr")
    assert why.sentence.endswith("… and 2,797 more")


def test_a_pod_with_thousands_of_resources_is_explained_with_their_number() -> None:
    wants = {f"r{index}.example.com/{'x' * 60}": 1 for index in range(3_000)}
    scene = LoggedScene([make_node("n0")])
    scene.put(make_group("rich", 1), *make_pods("rich", 1, make_shape(wants)))
    scene.settle()
    assert_sent(scene)
    why = scene.verdict("rich").why
    assert why is not None
    assert "and 2,989 more needed" in why.sentence
    assert len(why.sentence.encode()) <= 2_048


def test_verdicts_of_a_gang_of_ten_thousand_with_the_longest_names_fit() -> None:
    scene = LoggedScene([make_node(NODE, HUGE)])
    submit(scene, "big", 10_000, 1)
    for _ in range(10):
        scene.until_quiet()
        scene.carry_out(phase="Running")
    submit(scene, "late", 10_000, 10_000, shape=FULL)
    scene.step(after_ms=30_000)
    scene.until_quiet()
    assert_sent(scene)
    assert len(scene.verdict("big").placed) > 500
    assert len(scene.verdict("late").waiting) > 500


def test_the_lists_of_a_verdict_fit_together_with_everything_else() -> None:
    """No gang has all of them at once, but each part has its own bound."""
    scene = LoggedScene([make_node(NODE, HUGE)])
    submit(scene, "big", 10_000, 1)
    for _ in range(10):
        scene.until_quiet()
        scene.carry_out(phase="Running")
    scene.put(make_group("wide", 2_800), *roles(2_800))
    submit(scene, "late", 10_000, 10_000, shape=FULL)
    scene.step(after_ms=30_000)
    scene.until_quiet()
    long = PodRef(uid="u" * 36, name="p" * NAME_MAX, node=NODE)
    big, wide = scene.verdict("big"), scene.verdict("wide")
    condition = msgspec.structs.replace(wide.conditions[0], message="m" * 2_048)
    pods = PodSet(name="p" * NAME_MAX, uid="u" * 36, count=10_000)
    # Later pods of one gang have at most two sets with more than a few resources.
    requests = tuple((f"{index:0317}", 1 << 60) for index in range(POD_RESOURCES_MAX))
    later = (msgspec.structs.replace(pods, requests=requests),) * 2
    everything: Verdict = msgspec.structs.replace(
        wide,
        placed=big.placed,
        waiting=scene.verdict("late").waiting,
        evicted=(long,) * 100,
        unnamed=(msgspec.structs.replace(long, node=""),) * 500,
        conditions=(condition,) * 10,
        provisioning=Provisioning(
            request="r" * NAME_MAX,
            obsolete=("o" * NAME_MAX,) * 100,
            obsolete_uids=("u" * 36,) * 100,
            pod_sets=(*later, *(pods,) * (POD_SETS_MAX - 2)),
        ),
    )
    assert len(codec.encode(everything)) <= LIMIT


def test_a_release_of_thousands_of_pods_is_decided_in_parts_that_fit() -> None:
    scene = LoggedScene([make_node(NODE, HUGE)])
    submit(scene, "big", 4_000, 2_000)
    refused = scene.pods_of("big")[0].name
    scene.settle()
    scene.refuses = lambda binding: binding.name <= refused
    scene.carry_out()
    scene.until_quiet()
    for pod in scene.pods_of("big"):
        if pod.node and not pod.deleting and pod.index > 1_000:
            scene.remove(pod)
    scene.until_quiet()
    assert_sent(scene)


def test_victims_are_split_by_their_bytes() -> None:
    victims = [
        Victim(uid=f"{index:036d}", namespace="s" * 63, name="v" * NAME_MAX)
        for index in range(10_000)
    ]
    parts = list(parts_of(victims))
    assert [one for part in parts for one in part] == victims
    assert len(parts) == 4
    assert max(len(codec.encode(part)) for part in parts) < LIMIT - 16 * 1024
    assert list(parts_of([])) == []


def test_a_quorum_is_too_large_if_its_longest_members_do_not_fit() -> None:
    """Which members are placed depends on their order, not on their names' lengths."""
    scene = LoggedScene([make_node(NODE, HUGE)])
    pods = long_pods("big", 5_000)
    short = [msgspec.structs.replace(pod, name=f"a{pod.index}") for pod in pods[2_500:]]
    scene.put(long_group("big", 2_400), *pods[:2_500], *short)
    scene.settle()
    assert_sent(scene)


def lose_all_but_one(scene: LoggedScene, size: int) -> list[Pod]:
    """A gang runs and loses its members, for which capacity is held; its pods, as they were."""
    pods = submit(scene, "big", size, size)
    scene.settle()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.remove_together(*scene.pods_of("big")[1:])
    scene.step()
    assert len(scene.holds()) == size - 1
    return pods[1:]


def written_and_read(scene: LoggedScene) -> list[Checkpoint]:
    """The pages of a checkpoint: each fits, and a planner that starts from them writes the same."""
    pages = scene.planner.checkpoint(scene.outcome_seq)
    assert max(len(codec.encode(page)) for page in pages) <= LIMIT
    scene.pages = [msgspec.msgpack.decode(codec.encode(page), type=Checkpoint) for page in pages]
    scene.restart(checkpoint=True)
    again = scene.planner.checkpoint(scene.outcome_seq)
    listed = [(page.decisions, page.gangs, page.outcomes) for page in pages]
    assert [(page.decisions, page.gangs, page.outcomes) for page in again] == listed
    return pages


def test_lost_members_by_the_thousand_are_replaced_in_decisions_that_fit() -> None:
    scene = LoggedScene([make_node(NODE, HUGE)])
    lost = lose_all_but_one(scene, 1_500)
    scene.put(
        *(
            msgspec.structs.replace(pod, uid=f"next{index:032d}", resource_version=9)
            for index, pod in enumerate(lost)
        )
    )
    scene.until_quiet()
    assert_sent(scene)
    assert sum(len(one.fills) for _, one in scene.decisions) == 1_499


def test_the_state_of_one_gang_larger_than_a_page_is_written_on_several() -> None:
    scene = LoggedScene([make_node(NODE, HUGE)])
    lose_all_but_one(scene, 1_500)
    pages = written_and_read(scene)
    named = [gang for page in pages for gang in page.gangs if gang.gang.endswith("/big")]
    assert len(named) > 1
    assert sum(len(gang.notes) for gang in named) == 1_499
    assert max(len(codec.encode(page)) for page in pages) <= PAGE_BYTES_MAX


def test_a_decision_and_its_outcome_larger_than_a_message_are_on_two_pages() -> None:
    scene = LoggedScene([make_node(NODE, HUGE)])
    submit(scene, "big", 1_400, 1_400)
    (decision,) = scene.settle()
    (seq,) = [seq for seq, one in scene.decisions if one is decision]
    scene.answer(
        seq,
        decision,
        [
            Member(uid=one.uid, node=one.node, result="unprepared", message="no" * 100, late=True)
            for one in decision.bindings
        ],
        "PreflightFailed",
    )
    pages = written_and_read(scene)
    assert sum(len(page.outcomes) for page in pages) == 1


def test_an_eviction_that_does_not_fit_into_a_message_is_not_decided() -> None:
    nodes = [make_node(f"n{index:02d}".ljust(NAME_MAX, "n"), HUGE) for index in range(2)]
    scene = LoggedScene(nodes, conf=configured())
    each = make_shape({"cpu": 1_000})
    low = [msgspec.structs.replace(pod, priority=0) for pod in long_pods("low", 1_900, each)]
    scene.put(long_group("low", 1), *low)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    high = long_pods("high", 1_500, each, priority=10)
    scene.put(long_group("high", 1_500), *high)
    scene.until_quiet()
    acts = [one for _, one in scene.acts]
    assert any(isinstance(one, GangDecision) for one in acts)
    assert not any(isinstance(one, EvictionDecision) for one in acts)
    assert_sent(scene)
    why = scene.verdict("high").why
    assert why is not None
    assert why.reason == "NotEnoughResources"


def test_a_reservation_on_thousands_of_nodes_with_the_longest_names_fits_into_a_page() -> None:
    scene = LoggedScene([make_node(f"{index}-".ljust(NAME_MAX, "n")) for index in range(3_000)])
    scene.put(make_group("a", 1, run_limit_s=600), *make_pods("a", 1, FULL))
    scene.until_quiet(within_ms=1_000)
    scene.carry_out(phase="Running")
    scene.put(make_group("b", 3_000, run_limit_s=600), *make_pods("b", 3_000, FULL))
    scene.until_quiet(within_ms=2_000)
    notes = [record for _, record in scene.records if isinstance(record, NoteOpened)]
    (note,) = (note for note in notes if note.rooms)
    assert len(codec.encode(note)) <= PAGE_BYTES_MAX * 3 // 4
    ((_, places),) = note.rooms
    assert len(places) > 900
    assert_sent(scene)
