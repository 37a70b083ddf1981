"""Tests of what the embedded cluster adds to the API: nodes, faults, a process of its own."""
