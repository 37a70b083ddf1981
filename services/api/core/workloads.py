"""The known workloads, by UID and by name."""

from shared.model.reference_objects import Workload


class WorkloadTable(dict[str, Workload]):
    """Workloads by UID."""

    def __init__(self) -> None:
        super().__init__()
        #: The same by namespace and name.
        self.by_name: dict[tuple[str, str], Workload] = {}

    def put(self, one: Workload) -> None:
        """Add a workload, or replace its former state."""
        self[one.uid] = one
        self.by_name[one.namespace, one.name] = one

    def remove(self, uid: str) -> None:
        """Forget a workload, if it is known."""
        one = self.pop(uid, None)
        # A new object of the same name may have arrived before this deletion.
        if one is not None and self.by_name.get((one.namespace, one.name)) is one:
            del self.by_name[one.namespace, one.name]
