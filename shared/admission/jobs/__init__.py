"""Volcano Jobs: `rules` for the webhook's table, `defaults`, and `validation` with its parts."""
