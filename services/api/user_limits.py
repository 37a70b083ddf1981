"""Limits of what each user, and all users together, may have open at a time."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from services.api.errors import RequestFailed

#: Of a user's name in a message. Names have any length.
NAME_CHARACTERS_MAX: Final = 100


class UserLimits:
    """Admits what users open, up to a number in all and for each user."""

    def __init__(
        self,
        title: str,
        *,
        in_all: int,
        of_user: int,
        retry_s: int,
        flags: tuple[str, str] | None = None,
    ) -> None:
        """`title` names what is counted, in the plural. `retry_s`: when a refused client may try
        again. `flags` set the two limits; None: they are fixed.
        """
        self._title = title
        self._in_all = in_all
        self._of_user = of_user
        self._retry_s = retry_s
        self._in_all_flag, self._of_user_flag = (
            (f" ({flag})" for flag in flags) if flags else ("", "")
        )
        #: By the user's name: what is open, and what is being opened.
        self._open = Counter[str]()

    @contextmanager
    def one_more(self, user: str) -> Generator[None]:
        """Count one more of the user of this name for the length of the block.

        Raises:
            RequestFailed: 429, a limit is reached; the message names it.
        """
        if self._open[user] >= self._of_user:
            raise self._refusal(
                f"the user {user[:NAME_CHARACTERS_MAX]} may have at most "
                f"{self._of_user}{self._of_user_flag}"
            )
        if self._open.total() >= self._in_all:
            raise self._refusal(
                f"all users together may have at most {self._in_all}{self._in_all_flag}"
            )
        self._open[user] += 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]

    def _refusal(self, rule: str) -> RequestFailed:
        return RequestFailed(429, f"too many {self._title}: {rule}", retry_after_s=self._retry_s)
