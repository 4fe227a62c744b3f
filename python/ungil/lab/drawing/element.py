"""Elements of SVG and HTML as text, everything in them escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def element(tag: str, *inside: str, **attributes: str | float) -> str:
    """An element around markup; `class_` is `class`, `aria_hidden` is `aria-hidden`."""
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_value(value), quote=True)}"'
        for name, value in attributes.items()
        if value != ""
    )
    return f"<{tag}{words}>{''.join(inside)}</{tag}>"


def text(words: str, x: str | float, y: float, class_: str = "") -> str:
    """A line of text in a drawing."""
    return element("text", escape(words), x=x, y=y, class_=class_)


def drawn_panel(
    names: tuple[str, str],
    said: str,
    parts: Sequence[str],
    height_px: float,
    margin_px: float,
    class_: str = "plot wide",
) -> str:
    """A drawing under its heading; `names` are those of its chart and its own, which may be "".

    `said` is what it shows in words. The labels beside it have `margin_px`.
    """
    of, title = names
    drawn = element(
        "svg",
        element("title", escape(f"{of}: {title}".rstrip(": "))),
        element("desc", escape(said)),
        *parts,
        role="img",
        height=height_px,
        class_=class_,
        style=f"--margin:{margin_px:.0f}px",
    )
    heading = element("h4", escape(title)) if title else ""
    return element("div", heading, drawn, class_="panel")


def grid(panels: Sequence[str]) -> str:
    """Panels side by side where there is room: three in a row if that comes out even, or two."""
    columns = 3 if len(panels) % 3 == 0 else 2
    return element("div", *panels, class_=f"panels by-{columns}")


def percent(share: float) -> str:
    """A share of a width, as SVG takes it."""
    return f"{_value(round(100 * share, 3))}%"


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"
