"""The one place where matplotlib is imported."""

from __future__ import annotations

from typing import Any

# One dark blue and three greys, of different lightness: they differ on paper too.
INK, MEDIUM, LIGHT, PALE = "#2f5d8a", "0.45", "0.75", "0.94"


def axes(ax: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """Figure and axes to draw on: those given, or new ones of this size in inches."""
    if ax is not None:
        return ax.figure, ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed: pip install bisvm[plots]"
        ) from error
    return plt.subplots(figsize=size, layout="constrained")


def literal(text: Any, most: int = 48) -> str:
    """Text from data as it is: dollars are no formulas, line ends and tails are cut.

    What is longer than `most` characters ends in dots.
    """
    shown = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return shown.replace("$", r"\$")


def plain(ax: Any) -> None:
    """No frame where it says nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def log_scale(ax: Any) -> None:
    """A logarithmic y-axis with plain numbers, a few of them in every decade."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter("{x:.3g}")


def decades(ax: Any, axis: str) -> None:
    """A logarithmic axis ("x" or "y") over decades, with plain numbers."""
    from matplotlib.ticker import LogLocator, NullLocator

    getattr(ax, f"set_{axis}scale")("log")
    one = getattr(ax, f"{axis}axis")
    low, high = getattr(ax, f"get_{axis}lim")()
    subs = (1, 2, 5) if high < 1e2 * low else (1, 3) if high < 1e4 * low else (1,)
    one.set_major_locator(LogLocator(subs=subs, numticks=9))
    one.set_minor_locator(NullLocator())
    one.set_major_formatter("{x:.4g}")
