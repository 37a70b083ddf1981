"""Tests of `tutti queues`."""
