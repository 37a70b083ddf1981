"""Tests of `tutti simulate`."""
