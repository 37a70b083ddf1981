"""Tests of what the embedded cluster adds to the API: nodes, the operator's stand-in, faults."""
