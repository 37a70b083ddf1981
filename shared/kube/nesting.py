"""Cuts JSON that is nested too deep for a decoder.

A user can create an object with a field that no schema checks (labels of a template, a part that
the schema preserves) and nest it ten thousand levels deep: the API server stores it, and every
recursive decoder fails on the whole object. Parts that are too deep are replaced by null here, and
the rest can be read.
"""

import re
from typing import Final

#: Kubernetes' own kinds are about thirty levels deep.
DEPTH_MAX: Final = 200
#: A bracket, or a whole string, so that brackets within it do not count. A string without an end
#: reaches to the end of the text. Possessive (`++`), because backtracking would be quadratic.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def shallow(body: bytes) -> bytes:
    """The same JSON with null for each array or object that is more than DEPTH_MAX deep.

    Linear in time, and without recursion. A text that is not JSON is not JSON afterwards either.
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
    # With brackets that never close, the rest is dropped, and the result is not JSON.
    return b"".join([*kept, body[begin:]]) if depth <= DEPTH_MAX else b"".join(kept)
