"""A group that is deleted and made again under its name is another object with another id: what the
log has open of it continues under the new id, or is closed, and nothing stays open for ever.
"""

import msgspec
import pytest

from shared.contracts.decisions import GangDecision, NoteClosed, NoteOpened
from tests.services.gang_planner.core.scene import (
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.story import Story

FULL = make_shape({"cpu": 4000})


def open_notes(story: Story) -> list[tuple[str, str]]:
    """(gang id, kind) of the notes that the log has open."""
    found: dict[tuple[str, str], None] = {}
    for _, one in story.records:
        if isinstance(one, NoteOpened):
            found[one.gang_id, one.kind] = None
        elif isinstance(one, NoteClosed):
            found.pop((one.gang_id, one.kind), None)
    return list(found)


def refused(*, delivered: int = 1) -> Story:
    """A gang of three of which a policy refuses one: its release is open, and continues for two
    minutes if the decision was delivered twice, because a late request may still bind the member.
    """
    story = Story([make_node(f"n{i}") for i in range(5)])
    story.refuses = lambda binding: binding.name == "a-worker-1"
    story.put(make_group("a", 3), *make_pods("a", 3, FULL))
    story.step()
    ((seq, decision),) = story.decisions
    story.done.add(seq)
    first, second, third = decision.bindings
    for one in (first, third):
        story.change(one.uid, node=one.node)
    story.answer(seq, decision, [story.refusal(second)], delivered=delivered)
    story.step()
    assert open_notes(story) == [("group-a", "release")]
    return story


def replace_group(story: Story, before: str, after: str) -> None:
    """The user deletes the group and makes it again."""
    (group,) = (one for uid, one in story.objects.items() if uid == before)
    story.remove(group)
    story.step()
    story.put(msgspec.structs.replace(group, uid=after))
    story.step()


@pytest.mark.parametrize("picture_first", [False, True])
def test_a_release_ends_although_its_gang_had_its_last_id_before(picture_first: bool) -> None:
    story = refused(delivered=2)
    story.until_quiet()
    story.carry_out()
    story.step()
    replace_group(story, "group-a", "group-b")
    assert open_notes(story) == [("group-b", "release")]
    # Not after a cycle: a checkpoint is taken then, which forgets the ids that nothing has.
    story.restart(picture_first=picture_first)
    story.remove(story.objects["group-b"])
    story.remove(*story.pods_of("a"))
    story.until_quiet(within_ms=700_000)
    assert open_notes(story) == []


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_a_policy_refused_is_proved_though_group_and_pods_were_made_again_while_nobody_looked(
    checkpoint: bool,
) -> None:
    story = refused()
    story.until_quiet()
    pods = list(story.pods.values())
    story.carry_out()
    story.remove(story.objects["group-a"], *story.pods_of("a"))
    story.put(make_group("a", 3, uid="group-b"))
    story.make_again(pods)
    story.restart(checkpoint=checkpoint)
    story.until_quiet(within_ms=5_000)
    assert ("group-a", "release") not in open_notes(story)
    last = story.acts[-1][1]
    assert isinstance(last, GangDecision)
    assert (last.gang_id, last.attempt, last.preflight) == ("group-b", 2, True)


def test_a_gang_that_was_never_refused_leaves_nothing_to_the_next_of_its_name() -> None:
    story = Story([make_node(f"n{i}") for i in range(5)])
    group, pods = make_group("a", 3), make_pods("a", 3, FULL)
    story.put(group, *pods)
    story.until_quiet()
    story.carry_out()
    story.until_quiet()
    story.remove(group, *story.pods_of("a"))
    story.put(make_group("a", 3, uid="group-b"))
    story.make_again(pods)
    story.restart()
    story.until_quiet()
    last = story.acts[-1][1]
    assert isinstance(last, GangDecision)
    assert (last.gang_id, last.attempt, last.preflight) == ("group-b", 1, False)
