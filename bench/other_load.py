"""A process that keeps a core busy and has nothing to do with Tutti: `python -m bench.other_load`.

It encodes and decodes, as services do, in some megabytes of memory, until its standard input ends.
Beside it a benchmark shows what any other load of the machine costs.
"""

import os
import select
import sys
from typing import Final

import msgspec

_OBJECTS: Final = 20_000
_DOCUMENT: Final = [
    {"name": f"train-{n}", "namespace": f"team-{n % 40}", "members": list(range(n % 8))}
    for n in range(_OBJECTS)
]


def main() -> None:
    """Work until nothing is at the other end of standard input."""
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], 0)
        if ready and not os.read(sys.stdin.fileno(), 1):
            return
        msgspec.msgpack.decode(msgspec.msgpack.encode(_DOCUMENT))


if __name__ == "__main__":
    main()
