"""The marks of the three kinds, which differ in form and in colour, and what explains them.

Forms are told apart in black and white, and by those who see fewer colours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape

from ungil.lab.chart import Kind
from ungil.lab.drawing.element import element

SIDE_PX = 14
"""Of the square that a symbol of a legend is in."""

_FORMS: dict[Kind, str] = {
    "published": "M0-6L6 0L0 6L-6 0Z",
    "stock": "M-5 0A5 5 0 1 1 5 0A5 5 0 1 1-5 0Z",
    "ungil": "M-4.5-4.5H4.5V4.5H-4.5Z",
}
NAMES: dict[Kind, str] = {
    "published": "published",
    "stock": "today, without ungil",
    "ungil": "with ungil",
}

SYMBOLS = element(
    "svg",
    element(
        "defs",
        *(element("path", id=f"mark-{kind}", d=form) for kind, form in _FORMS.items()),
    ),
    width=0,
    height=0,
    class_="symbols",
    aria_hidden="true",
)
"""The forms, once for a page."""


def mark(kind: Kind, x: str | float, y: float, *, is_variant: bool = False) -> str:
    """A mark with its middle at x, y."""
    class_ = f"mark {kind}{' variant' if is_variant else ''}"
    return element("use", href=f"#mark-{kind}", x=x, y=y, class_=class_)


def kinds(there: Collection[Kind], reference: str = "") -> str:
    """What the marks of these kinds mean, and the dotted line."""
    return legend(((name, kind, False) for kind, name in NAMES.items() if kind in there), reference)


def legend(entries: Iterable[tuple[str, Kind, bool]], reference: str = "") -> str:
    """What each mark means: a name, a kind, and whether it is a variant; and the dotted line."""
    items = [
        element(
            "li",
            element(
                "svg",
                mark(kind, SIDE_PX / 2, SIDE_PX / 2, is_variant=is_variant),
                width=SIDE_PX,
                height=SIDE_PX,
                aria_hidden="true",
            ),
            escape(name),
        )
        for name, kind, is_variant in dict.fromkeys(entries)
    ]
    if reference:
        middle = SIDE_PX / 2
        line = element("line", x1=middle, x2=middle, y1=0, y2=SIDE_PX, class_="reference")
        items.append(
            element(
                "li",
                element("svg", line, width=SIDE_PX, height=SIDE_PX, aria_hidden="true"),
                escape(reference),
            )
        )
    return element("ul", *items, class_="legend")
