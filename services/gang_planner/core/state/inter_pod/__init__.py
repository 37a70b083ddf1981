"""Terms between pods as data: matchers, profiles of pods, counts per node and domain."""
