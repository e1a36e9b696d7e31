"""Things that can be looked at: `plot()` draws them, and a notebook shows them as a picture with its words.

What is drawn is registered from above (`report/drawings.py`): what is measured knows nothing of how it is shown.
"""

import base64
import html
import importlib.util
import io
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from eigentime.errors import EigentimeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (4.8, 2.4)
"""Inches of the picture in a notebook."""
DPI = 90
MOST = 4
"""Entries of a list that are shown in short."""


@singledispatch
def draw(thing: Any, axes: "Axes") -> None:
    """Draw a thing into axes; each kind of thing has its own way."""
    raise EigentimeError(f"There is no picture of {type(thing).__name__}.")


class Pictured:
    """Something with a picture."""

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw into these axes, or into a new figure of pyplot's; notebooks show it by themselves."""
        if axes is None:
            check_figures()
            from matplotlib import pyplot

            axes = pyplot.subplots(figsize=SIZE, layout="constrained")[1]
        draw(self, axes)
        return axes

    def _repr_html_(self) -> str:
        """What notebooks show: the words, and the picture where matplotlib is there to draw it."""
        words = f"<pre style='white-space:pre-wrap'>{html.escape(repr(self))}</pre>"
        if importlib.util.find_spec("matplotlib") is None:
            return words
        from matplotlib.figure import Figure

        figure, buffer = Figure(figsize=SIZE, layout="constrained"), io.BytesIO()
        draw(self, figure.subplots())
        figure.savefig(buffer, format="png", dpi=DPI)
        picture = base64.b64encode(buffer.getvalue()).decode()
        return f'{words}<img alt="{html.escape(type(self).__name__)}" src="data:image/png;base64,{picture}">'


def check_figures() -> None:
    """Refuse, before any work, to draw without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        raise EigentimeError("Figures need matplotlib: pip install 'eigentime[figures]'.")


def settings(described: dict[str, Any], *left_out: str) -> str:
    """What a description says, for a repr: long lists and what is empty are left out."""
    shown = {name: value for name, value in described.items() if name not in left_out and value not in (None, [])}
    return ", ".join(f"{name}={value}" for name, value in shown.items() if not _long(value))


def _long(value: Any) -> bool:
    return isinstance(value, list) and (len(value) > MOST or any(isinstance(each, list) for each in value))
