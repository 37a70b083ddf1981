"""Autoscalers that buy nodes for waiting pods: real programs, built from their Go modules.

Files take what operators share for it: `operators/building.py` and `operators/started.py`.
"""
