"""Whether another project's program lives that does what we would do: by its Leases.

Two programs that write the same objects undo each other's work, so ours waits, unless configured to
take over. `tutti up` looks at more before it starts; this keeps looking for as long as a controller
runs.

Whether a Lease is renewed is judged by our own monotonic time since we saw it change, never by its
renewTime: that is another machine's clock (ADR 0054).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from shared.kube.client import KubeClient
from shared.kube.errors import Forbidden, KubeError
from shared.kube.leases import LIVES_S, Lease
from shared.kube.resources import LEASES

logger = logging.getLogger(__name__)

#: Of the Leases named after our schedulers' names, the one that `tutti up` writes.
_OUR_OWN: Final = "tutti"
_LOOK_EVERY_S: Final = 15.0
#: Until the first look, no controller acts.
_RETRY_S: Final = 1.0
#: A Lease that is older than this at our first sight was left behind: no two machines' clocks are
#: so far apart. Any other is taken for a living one's until it was not renewed for `LIVES_S`.
_LEFT_BEHIND_S: Final = 600.0


class OtherControllers:
    """The holders of some Leases."""

    def __init__(
        self,
        client: KubeClient,
        leases: Iterable[str],
        *,
        take_over: bool = False,
        look_every_s: float = _LOOK_EVERY_S,
        lives_s: float = LIVES_S,
    ) -> None:
        """Know nothing yet, so that no controller acts, unless `take_over`.

        Args:
            client: Of the API server.
            leases: Their names, in whatever namespace.
            take_over: Act beside them, without looking for them.
            look_every_s: Seconds between two looks.
            lives_s: Seconds without a renewal after which a holder is taken for dead.
        """
        self._client = client
        self._leases = () if take_over else tuple(sorted(set(leases) - {_OUR_OWN}))
        self._look_every_s = look_every_s
        self._lives_s = lives_s
        self._looked_s = float("-inf")
        #: By uid: the holder of a Lease and its renewTime when we last saw it change, and when that
        #: was.
        self._changed: dict[str, tuple[tuple[str, datetime | None], float]] = {}
        #: The Lease of one that lives, as far as is known; "": none does; None: not looked yet.
        self._living: str | None = None if self._leases else ""
        #: The first look has been taken.
        self.known = asyncio.Event()
        if not self._leases:
            self.known.set()

    @property
    def none_lives(self) -> bool:
        """Whether we may act."""
        return self._living == ""

    async def look(self) -> bool:
        """Look, if it is time; whether none lives any more where one did.

        Raises:
            KubeError: It could not be seen; what was known stands.
        """
        now_s = asyncio.get_running_loop().time()
        if not self._leases or now_s - self._looked_s < self._look_every_s:
            return False
        before, self._living = self._living, await self._find()
        self._looked_s = now_s
        self.known.set()
        if self._living and self._living != before:
            logger.warning("Lease %s is renewed: its holder acts, not we", self._living)
        return bool(before) and not self._living

    async def run(self, on_change: Callable[[], None]) -> None:
        """Look again and again until cancelled; `on_change` is called when we may act from now on,
        or no longer.
        """
        while True:
            before = self.none_lives
            try:
                await self.look()
            except Forbidden as error:
                # A Lease of a name that the installation did not count on: nothing to go by.
                logger.warning("the check for other controllers is off: %s", error)
                self._leases, self._living = (), ""
                self.known.set()
            except KubeError as error:
                logger.warning("Leases cannot be looked at: %s", error)
            if self.none_lives != before:
                on_change()
            await asyncio.sleep(self._look_every_s if self._living is not None else _RETRY_S)

    async def _find(self) -> str:
        """The first Lease whose holder lives; all are looked at, so that each change is seen."""
        leases: list[Lease] = []
        for name in self._leases:
            page = await self._client.list(LEASES, Lease, field_selector=f"metadata.name={name}")
            leases += [one for one in page.items if isinstance(one, Lease)]
        now_s = asyncio.get_running_loop().time()
        self._changed = {
            one.metadata.uid: self._last_change(one, now_s)
            for one in leases
            if one.spec.holder_identity
        }
        living = (
            f"{one.metadata.namespace}/{one.metadata.name}"
            for one in leases
            if one.metadata.uid in self._changed
            and now_s - self._changed[one.metadata.uid][1] <= self._lives_s
        )
        return next(living, "")

    def _last_change(self, lease: Lease, now_s: float) -> tuple[tuple[str, datetime | None], float]:
        spec = lease.spec
        state = (spec.holder_identity, spec.renew_time)
        known = self._changed.get(lease.metadata.uid)
        if known is None:
            left_behind = spec.age_s(datetime.now(UTC)) > _LEFT_BEHIND_S
            return state, float("-inf") if left_behind else now_s
        return known if known[0] == state else (state, now_s)
