"""The class whose attributes are measured, as one that can be shared."""

from ungil import share


@share.struct
class Shared:
    """As `Slots` of shared_subjects.py."""

    value: int
