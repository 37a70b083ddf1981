"""The event loop of async tests does fail a test that leaves something open."""

import socket

import pytest

from tests.support.watchful_loop import WatchfulLoop


def test_what_is_left_open_fails_the_test() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop = WatchfulLoop(patience_s=0.0)
        loop.add_reader(ours, ours.recv, 1)
        with pytest.raises(AssertionError, match=r"left open: .*recv"):
            loop.close()
        assert loop.is_closed()


def test_what_is_closing_is_waited_for() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop = WatchfulLoop()
        loop.add_reader(ours, ours.recv, 1)
        loop.call_later(0.02, loop.remove_reader, ours)
        loop.close()
