"""Tests of `tutti nodes` and `tutti queues --shares`."""
