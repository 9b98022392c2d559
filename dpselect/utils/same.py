"""Keys of objects that are the very same."""

from operator import is_


class Same(tuple):
    """Tuple that equals another one if it has the same objects: 1 and True are equal, and two.

    For caches of what is made of objects that do not change.
    """

    def __eq__(self, other):
        return len(self) == len(other) and all(map(is_, self, other))

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(tuple(map(id, self)))
