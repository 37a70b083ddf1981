"""The scenarios that workloads of every operator play on four nodes with one GPU each.

The workload of an operator's page has four pods of one GPU. `earlier` and `train` are two of its
kind: only one of them can run.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tests.controlplane.client import Object
from tests.controlplane.nodes import GPU
from tests.documents.playing import matches
from tests.integration.operators.examples import NAME, Example
from tests.integration.operators.managed_sets import ManagedSets
from tests.integration.operators.remains import nothing_remains, verdicts
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

MEMBERS: Final = 4
EARLIER: Final = "earlier"
#: For an operator to create pods again, and for Tutti to bind them.
_BACK_S: Final = 60.0


class Scenarios:
    """Plays them with the example of one page.

    Args:
        sets: The workloads.
        example: What their page shows.
        reference: What the page asks `tutti why` about; "": the workload.
        collections: More collections of which nothing may remain: plural and version.
    """

    def __init__(
        self,
        sets: ManagedSets,
        example: Example,
        *,
        reference: str = "",
        collections: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.sets = sets
        self.example = example
        self._reference = reference or f"{sets.kind.word}/{NAME}"
        self._collections = tuple(collections)

    @property
    def stage(self) -> Stage:
        return self.sets.stage

    async def create(self, name: str) -> None:
        """Create the page's workload under this name."""
        objects = self.example.objects(name)
        await self.stage.created({"apiVersion": "v1", "kind": "List", "items": objects})

    async def one_runs_and_one_waits(self) -> None:
        """`earlier` runs whole, `train` waits whole, and `tutti why` answers as on the page."""
        await self.stage.nodes(MEMBERS, extended={GPU: 1})
        await self.create(EARLIER)
        await self.sets.wait_bound(EARLIER, MEMBERS)
        await self.sets.wait_running(EARLIER, MEMBERS)
        await self.create(NAME)
        await self.sets.wait_pods(NAME, MEMBERS)
        await self._is_explained()
        assert not await self.sets.placed(NAME)

    async def the_other_runs_then(self, delete: Callable[[str], Awaitable[None]]) -> None:
        """When `earlier` is deleted, `train` runs whole; when that is deleted, nothing is left."""
        assert await verdicts(self.stage.suite, self.stage.namespace)
        await delete(EARLIER)
        await self.sets.wait_bound(NAME, MEMBERS)
        await delete(NAME)
        await nothing_remains(self.stage, *self._collections)

    async def each_is_one_gang(self, die: Callable[[], Awaitable[str]] | None = None) -> None:
        """The life of a gang: two take turns, a worker dies, nothing is left."""
        await self.one_runs_and_one_waits()
        await self.a_dead_worker_is_replaced_in_its_place(die, recreated=1)
        await self.the_other_runs_then(self.sets.delete)

    async def a_dead_worker_is_replaced_in_its_place(
        self, die: Callable[[], Awaitable[str]] | None = None, *, recreated: int
    ) -> None:
        """A worker of `earlier` dies: its place is kept although `train` waits for it.

        Args:
            die: Ends one worker, and returns its UID; None: one of its pods fails.
            recreated: How many pods the operator creates for it.
        """
        before = await self.sets.places(EARLIER)
        dead = await (die() if die is not None else self.sets.fail_one(EARLIER))
        assert dead in before

        async def is_back() -> bool:
            assert not await self.sets.placed(NAME), "the waiting workload took the place"
            places = await self.sets.places(EARLIER)
            assert dead not in places
            assert len(places.keys() - before.keys()) == recreated, places
            assert sorted(places.values()) == sorted(before.values()), places
            return True

        await eventually(is_back, timeout_s=_BACK_S, because="the workload is whole again")
        assert not await self.sets.placed(NAME)

    async def one_is_suspended_and_resumed(self, suspended: Callable[[bool], Object]) -> None:
        """`earlier` is suspended, which lets `train` run; resumed, it waits whole.

        Args:
            suspended: The merge patch that suspends a workload, or resumes it.
        """
        await self.sets.patch(EARLIER, suspended(True))
        await self.sets.wait_bound(NAME, MEMBERS)
        assert not await self.sets.placed(EARLIER)
        await self.stage.why(f"{self.sets.kind.word}/{EARLIER}", "is suspended")
        await self.sets.patch(EARLIER, suspended(False))
        await self.sets.wait_pods(EARLIER, MEMBERS)
        await self.stage.why(f"{self.sets.kind.word}/{EARLIER}", f"{EARLIER} waits: ")
        assert await self.sets.placed(NAME) == MEMBERS
        await self.sets.delete(NAME)
        await self.sets.wait_bound(EARLIER, MEMBERS)

    async def one_shrinks_and_grows(self, scaled: Callable[[int], Object], small: int) -> None:
        """`earlier` shrinks to `small` pods and grows again, while `train` waits whole.

        Args:
            scaled: The merge patch that gives a workload this number of pods.
            small: Less than four.
        """
        for size in (small, MEMBERS):
            await self.sets.patch(EARLIER, scaled(size))
            await self._has_exactly(size)
            assert not await self.sets.placed(NAME)

    async def _has_exactly(self, size: int) -> None:
        async def is_placed() -> bool:
            pods, places = await self.sets.pods(EARLIER), await self.sets.places(EARLIER)
            return len(pods) == len(places) == size

        await eventually(is_placed, timeout_s=_BACK_S, because=f"{EARLIER} has {size} bound pods")

    async def _is_explained(self) -> None:
        """The page has the answer of `tutti why`, which names the job as its user does."""
        expected = self.example.answers[f"tutti why {self._reference}"]
        assert expected.startswith(f"{self._reference} waits: ")

        async def is_said() -> bool:
            text = await self.stage.suite.why(self._reference, self.stage.namespace)
            assert matches(expected, text), text
            return True

        await eventually(is_said, timeout_s=SEEN_S, because="the answer is that of the page")
