"""How many requests the API server gets at once: fewer when it sheds load, more while it answers.

As TCP does it. A request that was shed (429), or not answered in time, halves the window, once for
all that were in flight together; each answer widens it by its own share. So a binder finds by
itself what its share of a busy API server is (priority and fairness gives it seats), and goes to
full width within a few hundred answers. Pure: instants are arguments, of one clock that does not
go back.
"""


class Window:
    """One binder's."""

    def __init__(self, most: int) -> None:
        """Begin at full width: a cluster's API server is not busy on an ordinary day."""
        self._most = most
        self._size = float(most)
        self._cut_s = float("-inf")

    @property
    def width(self) -> int:
        """Requests that may be in flight now; at least 1."""
        return int(self._size)

    def answered(self) -> None:
        """The API server had time for a request."""
        if self._size < self._most:
            self._size = min(float(self._most), self._size + 1 / self._size)

    def overrun(self, sent_s: float, now_s: float) -> None:
        """A request of that instant was too much."""
        if sent_s > self._cut_s:
            self._cut_s = now_s
            self._size = max(1.0, self._size / 2)
