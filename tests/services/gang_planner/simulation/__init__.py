"""Tests of the engine behind `tutti simulate`."""
