"""Inter-pod terms as data: matchers, profiles of pods, counts per node and domain."""
