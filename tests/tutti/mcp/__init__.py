"""Tests of `tutti mcp`."""
