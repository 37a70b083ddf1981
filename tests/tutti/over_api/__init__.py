"""Tests of the commands that read Tutti's API where a cluster serves it."""
