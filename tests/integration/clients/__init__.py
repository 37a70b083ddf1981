"""Clients of other projects that submit jobs, as their users install them."""
