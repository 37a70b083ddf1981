"""What the containers of the cases do: how long a shell line runs, and the code it ends with.

Time passes quicker than in life (`SPEED`), so that a case may say what it means.
"""

import re
from typing import Final

from tests.conformance.process_kubelet import SERVING, image_name
from tests.controlplane.client import Object

#: Seconds of a command that pass in one of ours.
SPEED: Final = 4.0
#: What a shell answers where there is no such command, and those that never are there.
NOT_FOUND: Final = 127
_MISSING: Final = frozenset({"xxx", "xyz"})
#: What real work lasts, in seconds of ours.
WORK_S: Final = 1.0
_SLEEP: Final = re.compile(r"sleep (\d+(?:\.\d+)?)(s|m)?")
_EXIT: Final = re.compile(r"exit (\d+)")
_SPLIT: Final = re.compile(r"\s*(&&|;|\n)\s*")
_SERVES: Final = re.compile(r"sshd -D|--block|tail -f|sleep infinity")
_WORKS: Final = re.compile(r"\b(?:python3?|mpiexec|mpirun|torchrun|ray job)\b")


def nature(container: Object) -> tuple[float | None, int]:
    """How long a container runs (None: for ever), and its exit code then."""
    words = [*container.get("command", ()), *container.get("args", ())]
    if not words:
        return (None, 0) if image_name(container) in SERVING else (WORK_S, 0)
    return run_of(words[-1] if "-c" in words else " ".join(words))


def run_of(line: str) -> tuple[float | None, int]:
    """Read a line such as ``sleep 10s && exit 3``: pieces joined by ``&&`` and ``;``."""
    lasts_s, code = 0.0, 0
    pieces = _SPLIT.split(line.strip())
    for joined, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        if joined == "&&" and code:
            continue
        if _SERVES.search(piece):
            return None, 0
        if slept := _SLEEP.fullmatch(piece):
            lasts_s += float(slept[1]) * (60 if slept[2] == "m" else 1) / SPEED
            code = 0
        elif left := _EXIT.fullmatch(piece):
            return lasts_s, int(left[1])
        elif piece:
            lasts_s += WORK_S if _WORKS.search(piece) else 0.0
            code = NOT_FOUND if piece in _MISSING else 0
    return lasts_s, code
