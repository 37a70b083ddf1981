"""From a gang to its members' places: where a shape fits, how pods are spread, what is undone."""
