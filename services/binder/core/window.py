"""How many requests a binder has in flight: fewer when the API server sheds load, more while it
answers.

It is TCP's congestion window. A request that was shed (429) or not answered in time halves it, once
for all requests that were in flight together; each answer widens it by 1/width. So a binder finds
its share of a busy API server (the seats of priority and fairness), and regains full width within a
few hundred answers. Pure: instants are arguments, of one clock that does not go back.
"""


class Window:
    """The congestion window of one binder."""

    def __init__(self, most: int) -> None:
        """Begin at full width, `most` requests: an API server is mostly not busy."""
        self._most = most
        self._size = float(most)
        self._cut_s = float("-inf")

    @property
    def width(self) -> int:
        """Requests that may be in flight now; at least 1."""
        return int(self._size)

    def answered(self) -> None:
        """Widen after an answer."""
        if self._size < self._most:
            self._size = min(float(self._most), self._size + 1 / self._size)

    def overrun(self, sent_s: float, now_s: float) -> None:
        """Halve after a request sent at `sent_s` was shed, unless that happened since `sent_s`."""
        if sent_s > self._cut_s:
            self._cut_s = now_s
            self._size = max(1.0, self._size / 2)
