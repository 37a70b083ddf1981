"""Tests of `tutti bundle`."""
