"""The event loop of async tests, which fails the test that leaves a connection or a server open.

The garbage collector finds what an ended loop left open only whenever it runs next, and the warning
fails a later test that did nothing wrong.
"""

import asyncio
import selectors
from typing import Final

from typing_extensions import override

#: Closing TLS waits for the peer's answer; a peer on this machine answers within milliseconds.
_PATIENCE_S: Final = 5.0


class WatchfulLoop(asyncio.SelectorEventLoop):
    """A loop whose `close` waits for what is closing, and fails when something stays open.

    It does not see connections whose reading is paused.
    """

    def __init__(self, patience_s: float = _PATIENCE_S) -> None:
        """Wait so long in `close`."""
        self._selecting: selectors.BaseSelector = selectors.DefaultSelector()
        super().__init__(self._selecting)
        self._patience_s = patience_s
        #: The loop's own pipe.
        self._own = frozenset(self._selecting.get_map())

    @override
    def close(self) -> None:
        """Close the loop.

        Raises:
            AssertionError: A connection, a pipe or a server was left open.
        """
        if self.is_closed():
            return
        try:
            left = self.run_until_complete(self._wait_closed())
        finally:
            super().close()
        assert not left, f"left open: {', '.join(left)}"

    async def _wait_closed(self) -> list[str]:
        """What is still open after the patience, described."""
        ends_s = self.time() + self._patience_s
        while (left := self._left()) and self.time() < ends_s:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.01)
        # A transport that closes is not watched any more, and closes its socket a turn later.
        for _ in range(3):
            await asyncio.sleep(0)
        return left

    def _left(self) -> list[str]:
        keys = [key for fd, key in self._selecting.get_map().items() if fd not in self._own]
        return [f"{key.fileobj} {[handle for handle in key.data if handle]}" for key in keys]
