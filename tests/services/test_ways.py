"""How many files a reader opens to follow one event through the watcher, one decision through the
binder, and one Job and one verdict through the controller. The numbers only fall.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import services
from bench.watcher_core import pod, publish, state_with_groups
from services.controller.core.statuses.intents import plan
from services.controller.state import WrittenGang
from shared.dialects.discovery import readers
from shared.kube import objects as kube
from shared.kube.decoding import KindDecoder
from shared.kube.resources import PODS
from tests.services.binder.core.samples import BOUND, make_machine
from tests.services.controller.core.jobs.making import a_job, step
from tests.services.controller.core.samples import KNOBS, START_MS, make_running, situation
from tests.support.way import Length, files_called, length_of

_ROOT = Path(services.__file__).parent.parent


def way_of(work: Callable[[], object]) -> Length:
    """The way through services and shared code, once the caches of the process are filled."""
    work()
    return length_of(files_called(work, _ROOT, "services", "shared"))


def test_the_way_of_an_event_through_the_watcher_does_not_become_longer() -> None:
    decoder = KindDecoder(kube.Pod)
    lines = iter(
        [
            msgspec.json.encode({"type": kind, "object": pod(number, version, node)})
            for number in (0, 1)
            for kind, version, node in (("ADDED", 1, ""), ("MODIFIED", 2, "node-1"))
        ]
    )
    state = state_with_groups()

    def follow() -> None:
        changes: Any = [decoder.change(next(lines))]
        state.changed(readers()[PODS], changes, 1)
        publish(state)

    follow()
    follow()  # Now all caches have what the pods of this template share.
    assert way_of(follow) == Length(files=14, returns=11)


def test_the_way_of_a_decision_through_the_binder_does_not_become_longer() -> None:
    def bind() -> None:
        machine = make_machine(2)
        machine.start(0)
        machine.answered(0, BOUND, 1)
        machine.answered(1, BOUND, 2)

    assert way_of(bind) == Length(files=5, returns=9)


def test_the_way_of_a_job_to_its_pods_does_not_become_longer() -> None:
    assert way_of(lambda: step(a_job(phase="Pending"))) == Length(files=16, returns=35)


def test_the_way_of_a_verdict_to_its_writes_does_not_become_longer() -> None:
    def report() -> None:
        plan(situation(make_running()), WrittenGang(), START_MS, KNOBS)

    assert way_of(report) == Length(files=10, returns=11)
