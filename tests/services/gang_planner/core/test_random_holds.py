"""Random lives in which members of running gangs die and come again: every invariant holds after
every cycle, and a planner that starts from the logs has the holds of the one before it.
"""

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from typing_extensions import override

from services.gang_planner.core.planner import Planner
from shared.model.objects import PriorityClass
from tests.services.gang_planner.core.inside import state_of
from tests.services.gang_planner.core.test_random_life import GANGS, SHAPES, Life


class HoldLife(Life):
    """The life of `test_random_life`, with controllers that make again what was lost."""

    @initialize()
    @override
    def begin(self) -> None:
        super().begin()
        for gang, size in zip(GANGS[:3], (3, 2, 2), strict=True):
            self.submit(gang, size=size, missing=0, shape=SHAPES[2 * (size == 2)], second=None)
        self.all_is_carried_out()

    @rule()
    def all_is_carried_out(self) -> None:
        self.cycles_run()
        for decision in self.open:
            for one in decision.bindings:
                pod = self.scene.pods.get(one.uid)
                if pod is not None and not pod.node:
                    self.scene.change(one.uid, node=one.node, phase="Running")
            self.scene.outcome(decision)
        self.open.clear()
        self.cycles_run()

    @rule(data=st.data(), gently=st.booleans(), by_others=st.booleans())
    def a_running_pod_is_deleted(self, data: st.DataObject, gently: bool, by_others: bool) -> None:
        running = sorted(uid for uid, pod in self.scene.pods.items() if pod.phase == "Running")
        if not running:
            return
        uid = data.draw(st.sampled_from(running))
        if gently or by_others:
            self.scene.change(uid, deleting=True, disrupted=by_others)
        if not gently:
            self.scene.remove(self.scene.pods[uid])

    @rule(data=st.data(), other_shape=st.none() | st.sampled_from(SHAPES))
    def a_controller_makes_a_pod_again(
        self, data: st.DataObject, other_shape: bytes | None
    ) -> None:
        names = sorted({pod.group_name for pod in self.scene.pods.values() if pod.group_name})
        if not names:
            return
        gang = data.draw(st.sampled_from(names))
        pattern = next(pod for pod in self.scene.pods.values() if pod.group_name == gang)
        serial = self.next()
        self.scene.put(
            msgspec.structs.replace(
                pattern,
                uid=f"{gang}-again-{serial}",
                name=f"{gang}-again-{serial}",
                resource_version=serial,
                node="",
                phase="Pending",
                deleting=False,
                disrupted=False,
                shape=other_shape or pattern.shape,
            )
        )

    @rule(gang=st.sampled_from(GANGS), priority=st.integers(0, 2))
    def a_gang_becomes_more_important(self, gang: str, priority: int) -> None:
        group = self.groups.get(gang)
        if group is None:
            return
        name = f"class-{priority}"
        self.scene.put(
            PriorityClass(uid=name, name=name, resource_version=self.next(), value=priority)
        )
        changed = msgspec.structs.replace(group, priority_class=name, resource_version=self.next())
        self.groups[gang] = changed
        self.scene.put(changed)

    @rule()
    def a_planner_that_starts_from_the_logs_owes_the_same(self) -> None:
        twin = self.start_twin()
        ours, theirs = (replacements(one) for one in (self.scene.planner, twin))
        assert ours == theirs


def replacements(planner: Planner) -> dict[str, tuple[Any, ...]]:
    return {
        hold.uid: (
            *(hold.gang_id, hold.role, hold.shape.encoded, hold.reason),
            *(hold.node, hold.until_ms, hold.message),
        )
        for hold in state_of(planner).holds.by_uid.values()
    }


TestHoldLife = HoldLife.TestCase
TestHoldLife.settings = settings(max_examples=25, stateful_step_count=50, deadline=None)
