"""How often to flush: a burst goes at once, a lasting stream is packed.

Each append costs the watcher, the server and every reader a fixed piece of CPU, whatever is in it;
an API server that binds hundreds of pods a second sends them one by one. So flushes are drawn from
a bucket: it is full when nothing happened for a while, and a gang that appears in an idle cluster
never waits; under a lasting stream flushes come at the bucket's rate and carry what has collected.

Pure: the instant is an argument.
"""

from typing import Final

#: A gang of eight is its group, its pods and their bindings.
BURST: Final = 24
#: 10 ms between flushes under load: a tenth of what a gang waits there anyway.
PER_S: Final = 100


class FlushPace:
    """A token bucket of flushes."""

    def __init__(self, *, burst: int = BURST, per_s: int = PER_S) -> None:
        self._burst = burst
        self._per_s = per_s
        self._tokens = float(burst)
        self._at_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """Draw one flush at `now_s`; returns how long to wait before it, 0.0 mostly."""
        if self._at_s is not None:
            gained = max(0.0, now_s - self._at_s) * self._per_s
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._at_s = now_s
        self._tokens -= 1
        return max(0.0, -self._tokens / self._per_s)
