"""Whether things that name each other can be put in an order."""

from collections.abc import Iterable, Mapping


def ring(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """Names that need each other in a ring, in its order; [] when there is none.

    Undeclared names are as if they needed nothing.
    """
    done: set[str] = set()
    for start in needs:
        stack = [(start, iter(needs.get(start, ())))] if start not in done else []
        # A dict, not a list: an object holds tens of thousands of names.
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
