"""Images side by side: one row per strategy, one column per number of evaluations."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Real

from eigentime.report.figures import check_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Images = Real[np.ndarray, "n tokens"]


def tile(images: Images, shape: tuple[int, ...], highest: int, columns: int = 4) -> np.ndarray:
    """Images of shape (C, H, W) as one picture (rows·H, columns·W, 3) with a thin gap, values in [0, 1]."""
    channels, height, width = shape
    pictures = images.reshape(-1, *shape).transpose(0, 2, 3, 1) / highest
    if channels == 1:
        pictures = pictures.repeat(3, -1)
    rows = -(-len(pictures) // columns)
    sheet = np.ones((rows * (height + 1) - 1, columns * (width + 1) - 1, 3))
    for k, picture in enumerate(pictures):
        top, left = k // columns * (height + 1), k % columns * (width + 1)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def tiles_figure(cells: dict[tuple[str, int], Images], shape: tuple[int, ...], highest: int) -> "Figure":
    """`cells` by (strategy, evaluations)."""
    check_figures()
    from matplotlib.figure import Figure

    strategies, counts = list(dict.fromkeys(name for name, _ in cells)), sorted({count for _, count in cells})
    figure = Figure(figsize=(2.3 * len(counts) + 0.8, 2.35 * len(strategies) + 0.3), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    grid = figure.subplots(len(strategies), len(counts), squeeze=False)
    for strategy, axes_row in zip(strategies, grid, strict=True):
        for count, axes in zip(counts, axes_row, strict=True):
            axes.set(xticks=[], yticks=[])
            for side in axes.spines.values():
                side.set_visible(False)
            if (strategy, count) in cells:
                axes.imshow(tile(cells[strategy, count], shape, highest), interpolation="nearest")
            if strategy == strategies[0]:
                axes.set_title(f"{count} evaluations", fontsize=10)
        axes_row[0].set_ylabel(strategy, fontsize=11)
    return figure
