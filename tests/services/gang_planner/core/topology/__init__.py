"""Tests of the domains of the topology."""
