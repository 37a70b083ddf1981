"""A process of a benchmark that ends when its standard input does, so that it never outlasts it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ChildProcess:
    """Such a process, from the side of the benchmark."""

    def __init__(self, pid: int, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout


@asynccontextmanager
async def child_process(module: str, *flags: str) -> AsyncIterator[ChildProcess]:
    """Run a module in a process of its own, for the length of the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *flags),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield ChildProcess(process.pid, process.stdin, process.stdout)
    finally:
        process.stdin.close()
        await process.wait()
