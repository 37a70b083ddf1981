"""Volcano's programs, for scripts and users of Volcano: `vcctl`, and the Slurm-like `vsub`,
`vjobs`, `vcancel`, `vsuspend`, `vresume`, `vqueues`.

They run the commands of `tutti`, with Volcano's names of flags, default namespace and help texts,
and with its exit status and stream for failures.
"""
