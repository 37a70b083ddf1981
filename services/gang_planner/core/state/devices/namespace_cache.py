"""A cache of which each namespace has a bounded part: its users cannot push out what others use."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")

#: Results of all namespaces together, and of one.
RESULTS_MAX: Final = 1_024
NAMESPACE_RESULTS_MAX: Final = 256


class NamespaceCache(Generic[Key, Result]):
    """Results by namespace ("": of administrators) and key.

    A namespace with NAMESPACE_RESULTS_MAX loses the one that it has not used for longest. If all
    namespaces together have RESULTS_MAX, the one with the most loses one.
    """

    def __init__(self) -> None:
        #: The least recently used first. None of a namespace is empty.
        self._results: dict[str, dict[Key, Result]] = {}
        self._number = 0

    def clear(self) -> None:
        self._results.clear()
        self._number = 0

    def find(self, namespace: str, key: Key, make: Callable[[], Result]) -> Result:
        """The result for the key, made if it is not cached."""
        cached = self._results.get(namespace)
        if cached is not None and key in cached:
            found = cached[key] = cached.pop(key)
            return found
        # This may use the cache, too.
        made = make()
        if len(self._results.get(namespace, ())) >= NAMESPACE_RESULTS_MAX:
            self._drop_oldest(namespace)
        elif self._number >= RESULTS_MAX:
            self._drop_oldest(max(self._results, key=lambda one: len(self._results[one])))
        self._results.setdefault(namespace, {})[key] = made
        self._number += 1
        return made

    def _drop_oldest(self, namespace: str) -> None:
        cached = self._results[namespace]
        del cached[next(iter(cached))]
        self._number -= 1
        if not cached:
            del self._results[namespace]
