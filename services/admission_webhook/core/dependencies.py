"""Dependencies between named steps: whether they can be put in an order."""

from collections.abc import Iterable, Mapping


def find_ring(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """A ring of names of which each needs the next, with the first repeated at the end; [] when
    there is none. A name without an entry in `needs` needs nothing.
    """
    done: set[str] = set()
    for start in needs:
        stack = [(start, iter(needs.get(start, ())))] if start not in done else []
        # A dict, not a list: an object may have tens of thousands of names.
        way = {name: None for name, _ in stack}
        while stack:
            name, left = stack[-1]
            following = next((one for one in left if one not in done), None)
            if following is None:
                done.add(name)
                stack.pop()
                del way[name]
            elif following in way:
                names = list(way)
                return [*names[names.index(following) :], following]
            else:
                stack.append((following, iter(needs.get(following, ()))))
                way[following] = None
    return []
