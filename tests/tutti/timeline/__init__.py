"""Tests of `tutti timeline`."""
