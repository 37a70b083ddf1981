"""What the services share, in layers that only look down.

``runtime``, ``telemetry`` > ``dialects`` > ``bus``, ``kube`` > ``contracts`` > ``model``;
import-linter holds them to it.
"""
