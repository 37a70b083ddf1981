"""`python -m tests.tutti.up.sleeper`: a service that prints its name, and ends as asked."""

import asyncio
import os
import sys
import time

import aiohttp

from shared.runtime.heartbeat import Heartbeat


def main() -> None:
    """`say`: print and end. `exit N`: end with N. `sleep`: live.
    `beat`: live, and send heartbeats. `loaded NAME`: end with 1 if that module is loaded already.
    """
    words = sys.argv[1:]
    sys.stdout.write(f"{words} {os.getpid()} {os.getsid(0)}\n")
    sys.stdout.flush()
    assert aiohttp.__version__
    if words[0] == "exit":
        sys.exit(int(words[1]))
    if words[0] == "loaded":
        sys.exit(words[1] in sys.modules)
    if words[0] == "beat":
        asyncio.run(Heartbeat().run())
    if words[0] == "sleep":
        time.sleep(600)


if __name__ == "__main__":
    main()
