"""Tests of the API without I/O."""
