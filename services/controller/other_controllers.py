"""Detects active controllers and schedulers of other projects by their Leases.

Two programs that write the same objects revert each other's writes, so ours waits, unless it is
configured to take over. `tutti up` checks more before it starts; this check is repeated for as long
as a controller runs.

Whether a Lease is renewed is measured by our monotonic clock since its last observed change, not by
its renewTime, which is of another machine's clock (ADR 0054).
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

#: The Lease that `tutti up` itself writes, among those named after our scheduler names.
_OUR_OWN: Final = "tutti"
_CHECK_EVERY_S: Final = 15.0
#: Retry of a first check that failed, until which no controller acts.
_RETRY_S: Final = 1.0
#: A Lease that is older than this when first read is abandoned: no two clocks differ so much. Any
#: other Lease counts as renewed until it has not changed for `LIVES_S`.
_ABANDONED_S: Final = 600.0


class OtherControllers:
    """The holders of the given Leases."""

    def __init__(
        self,
        client: KubeClient,
        leases: Iterable[str],
        *,
        take_over: bool = False,
        check_every_s: float = _CHECK_EVERY_S,
        lives_s: float = LIVES_S,
    ) -> None:
        """Before the first check no controller may act; with `take_over` there is no check.

        `leases` are names of Leases in any namespace. A holder counts as dead after `lives_s`
        seconds without a renewal.
        """
        self._client = client
        self._leases = () if take_over else tuple(sorted(set(leases) - {_OUR_OWN}))
        self._check_every_s = check_every_s
        self._lives_s = lives_s
        self._checked_s = float("-inf")
        #: By UID of a Lease: its holder and renewTime at the last observed change, and our time
        #: then.
        self._changed: dict[str, tuple[tuple[str, datetime | None], float]] = {}
        #: Namespace and name of a renewed Lease; "": there is none; None: not checked yet.
        self._active: str | None = None if self._leases else ""
        #: Set after the first check.
        self.known = asyncio.Event()
        if not self._leases:
            self.known.set()

    @property
    def none_active(self) -> bool:
        """Whether our controllers may act."""
        return self._active == ""

    async def check(self) -> bool:
        """Read the Leases, if a check is due. Returns whether the last active holder has become
        inactive.

        Raises:
            KubeError: The Leases could not be read; the last result stays.
        """
        now_s = asyncio.get_running_loop().time()
        if not self._leases or now_s - self._checked_s < self._check_every_s:
            return False
        before, self._active = self._active, await self._find()
        self._checked_s = now_s
        self.known.set()
        if self._active and self._active != before:
            logger.warning(
                "another controller renews Lease %s: Tutti's controllers wait for it", self._active
            )
        return bool(before) and not self._active

    async def run(self, on_change: Callable[[], None]) -> None:
        """Check periodically until cancelled; call `on_change` when `none_active` has changed."""
        while True:
            before = self.none_active
            try:
                await self.check()
            except Forbidden as error:
                # The rights do not include a Lease of that name, so it cannot be checked.
                logger.warning("the check for other controllers is off: %s", error)
                self._leases, self._active = (), ""
                self.known.set()
            except KubeError as error:
                logger.warning("Leases cannot be read: %s", error)
            if self.none_active != before:
                on_change()
            await asyncio.sleep(self._check_every_s if self._active is not None else _RETRY_S)

    async def _find(self) -> str:
        """The first renewed Lease; "" for none. All are read, so that each change is observed."""
        leases: list[Lease] = []
        for name in self._leases:
            page = await self._client.list(LEASES, Lease, field_selector=f"metadata.name={name}")
            leases += [lease for lease in page.items if isinstance(lease, Lease)]
        now_s = asyncio.get_running_loop().time()
        self._changed = {
            lease.metadata.uid: self._last_change(lease, now_s)
            for lease in leases
            if lease.spec.holder_identity
        }
        active = (
            f"{lease.metadata.namespace}/{lease.metadata.name}"
            for lease in leases
            if lease.metadata.uid in self._changed
            and now_s - self._changed[lease.metadata.uid][1] <= self._lives_s
        )
        return next(active, "")

    def _last_change(self, lease: Lease, now_s: float) -> tuple[tuple[str, datetime | None], float]:
        spec = lease.spec
        state = (spec.holder_identity, spec.renew_time)
        known = self._changed.get(lease.metadata.uid)
        if known is None:
            abandoned = spec.age_s(datetime.now(UTC)) > _ABANDONED_S
            return state, float("-inf") if abandoned else now_s
        return known if known[0] == state else (state, now_s)
