"""Tests of `tutti top`."""
