"""Makes JSON that is nested beyond all sense readable.

A user who may create an object with a field that no schema checks (labels of a template, a part
that the schema preserves) can nest it ten thousand deep: the API server stores it, and every
decoder that recurses gives up on the whole object. What lies too deep is replaced by null, and the
rest is read.
"""

import re
from typing import Final

#: What Kubernetes' own kinds nest is about thirty levels deep.
DEPTH_MAX: Final = 200
#: A whole string, so that brackets within it do not count, or a bracket. A string without an end
#: reaches to that of the text, and nothing is tried twice (`++`), or the time were quadratic.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def shallow(body: bytes) -> bytes:
    """The same JSON with null for each array or object that is more than DEPTH_MAX deep.

    Linear in time, and without recursion. What is no JSON stays none.
    """
    kept: list[bytes] = []
    depth, begin = 0, 0
    for token in _TOKEN.finditer(body):
        bracket = token[0]
        if bracket in {b"[", b"{"}:
            depth += 1
            if depth == DEPTH_MAX + 1:
                kept.append(body[begin : token.start()])
        elif bracket in {b"]", b"}"}:
            depth -= 1
            if depth == DEPTH_MAX:
                kept.append(b"null")
                begin = token.end()
    # Brackets that never close leave nothing behind: no JSON then either.
    return b"".join([*kept, body[begin:]]) if depth <= DEPTH_MAX else b"".join(kept)
