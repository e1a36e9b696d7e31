"""How a picture comes about: which pixels are there after so many evaluations, order by order, and how it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Integer

from eigentime.report.figures import check_figures
from eigentime.report.tiles import tile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MASKED = (0.33, 0.45, 0.72)
"""The colour of pixels that are not known yet."""
COLUMNS = 8
"""Finished pictures side by side."""


@dataclass(frozen=True)
class Walks:
    """Pictures (N, L), and at which evaluation, from 0 on, each pixel was revealed."""

    tokens: Integer[np.ndarray, "n tokens"]
    asked: Integer[np.ndarray, "n tokens"]

    def canvas(self, which: int, after: int, shape: Sequence[int], highest: int) -> Float[np.ndarray, "h w 3"]:
        """A picture of shape (1, H, W) after so many evaluations, values in [0, 1]."""
        grey = np.repeat(self.tokens[which].reshape(*shape[1:], 1) / highest, 3, -1)
        known = (self.asked[which] < after).reshape(*shape[1:], 1)
        return np.where(known, grey, np.array(MASKED))


def canvases_figure(walks: Mapping[str, Walks], after: Sequence[int], shape: tuple[int, ...], highest: int) -> "Figure":
    """One row per order: the first picture after these numbers of evaluations, then all of them as they end."""
    check_figures()
    from matplotlib.figure import Figure

    rows = max(-(-len(each.tokens) // COLUMNS) for each in walks.values())
    widths = [*[1.0] * len(after), COLUMNS / rows]
    figure = Figure(figsize=(1.3 * sum(widths) + 0.9, 1.4 * len(walks) + 0.3), layout="constrained")
    grid = figure.subplots(len(walks), len(widths), squeeze=False, width_ratios=widths)
    for (name, each), panels in zip(walks.items(), grid, strict=True):
        pictures = [each.canvas(0, number, shape, highest) for number in after]
        for axes, picture in zip(panels, [*pictures, tile(each.tokens, shape, highest, COLUMNS)], strict=True):
            axes.imshow(picture, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            for side in axes.spines.values():
                side.set_visible(False)
        panels[0].set_ylabel(name, fontsize=10)
    for axes, number in zip(grid[0], after, strict=False):
        axes.set_title(f"after {number}", fontsize=10)
    grid[0][-1].set_title(f"as they end, after {max(after)} evaluations", fontsize=10)
    return figure
