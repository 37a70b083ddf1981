"""What can go wrong in the observer itself; what the rival does is never an error."""


class NewEpoch(Exception):
    """Another watcher writes CLUSTER: its snapshot replaces the picture."""

    def __init__(self, epoch: int) -> None:
        """Name the epoch."""
        super().__init__(f"watcher epoch {epoch}")
        self.epoch = epoch
