"""Volcano's programs, for scripts and users of Volcano: `vcctl`, and the Slurm-like `vsub`,
`vjobs`, `vcancel`, `vsuspend`, `vresume`, `vqueues`.

They have the commands of `tutti job`, and those to list, show, create and delete objects, which
`tutti` leaves to kubectl: with Volcano's names of flags, default namespace and help texts, and with
its exit status and stream for failures.
"""
