"""Tests of the demo: its claims can fail, its manifests are the seeds', the whole of it passes."""
