"""What can go wrong with a quantity."""


class UnknownUnit(ValueError):
    """Raised when a registry has no unit of the given name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown unit: {name!r}")
        self.name = name


class IncompatibleUnits(ValueError):
    """Raised when two units measure different things."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first!r} and {second!r} measure different things")


class UnreadableQuantity(ValueError):
    """Raised when a text is no number with a unit."""

    def __init__(self, text: str) -> None:
        super().__init__(f"not a quantity: {text!r}")
        self.text = text
