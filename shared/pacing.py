"""The two mechanisms that pace the product's work: a backoff after failures, and a token bucket for
work that may come in bursts and is bounded in the long run.

docs/pacing.md lists what uses them, with which limits and why.
"""

from random import Random


class Backoff:
    """Delays between failures in a row: their bound doubles with each failure, up to `max_s`.

    Each delay is drawn from the upper half of its bound, so that clients that failed together do
    not return together.
    """

    def __init__(self, *, base_s: float = 0.1, max_s: float, random: Random | None = None) -> None:
        """Begin with the bound `base_s`; `random` is for tests and simulations."""
        self._base_s = base_s
        self._max_s = max_s
        self._random = random or Random()  # noqa: S311 - jitter, no secret
        self._failures = 0

    def next_s(self, retry_after_s: float | None = None) -> float:
        """Count one more failure and return how many seconds to wait.

        Args:
            retry_after_s: What the API server asked for. The delay is no shorter, except that it
                never exceeds `max_s`: an absurd Retry-After must not silence the client.
        """
        bound_s = min(self._max_s, self._base_s * 2 ** min(self._failures, 30))
        self._failures += 1
        least_s = min(retry_after_s or 0.0, self._max_s)
        return max(least_s, self._random.uniform(bound_s / 2, bound_s))

    def reset(self) -> None:
        """Record a success: the next failure counts as the first."""
        self._failures = 0


class TokenBucket:
    """A burst passes at once, a lasting stream at a rate.

    Instants are arguments, in seconds of one clock; one that goes back gains nothing. Tokens are
    given in the order in which they are drawn, so a caller that waits for the returned time keeps
    its turn.
    """

    def __init__(self, *, burst: int, per_s: int) -> None:
        """Begin with `burst` tokens, and never hold more; gain `per_s` of them a second."""
        self._burst = burst
        self._per_s = per_s
        self._tokens = float(burst)
        self._at_s: float | None = None

    def draw(self, now_s: float, tokens: int = 1) -> float:
        """Draw so many tokens; returns how many seconds to wait before they may be used."""
        self._refill(now_s)
        self._tokens -= tokens
        return max(0.0, -self._tokens / self._per_s)

    def try_draw(self, now_s: float) -> bool:
        """Draw one token if it may be used at once; returns whether it was drawn."""
        self._refill(now_s)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def put_back(self) -> None:
        """Return one token that was drawn and not waited for."""
        self._tokens += 1

    def pause(self, now_s: float, pause_s: float) -> None:
        """Give no token for the next `pause_s` seconds, because the API server asked for it."""
        self._refill(now_s)
        self._tokens = min(self._tokens, -pause_s * self._per_s)

    def _refill(self, now_s: float) -> None:
        if self._at_s is not None:
            gained = max(0.0, now_s - self._at_s) * self._per_s
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._at_s = now_s
