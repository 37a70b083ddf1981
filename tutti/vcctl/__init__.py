"""Volcano's programs, for the habits and scripts of its users: `vcctl`, and the Slurm-like `vsub`,
`vjobs`, `vcancel`, `vsuspend`, `vresume`, `vqueues`.

The commands are those of `tutti`; names of flags, the default namespace, help texts, and the status
and stream of a failure are Volcano's.
"""
