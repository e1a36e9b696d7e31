"""Scenes packed for the page: a finished sequence costs a number per token, a film one per change."""

from typing import Any

import numpy as np
from jaxtyping import Int

from eigentime.report.page.material import Material, Scene

NO_MODEL = "no model was given to draw with; give one with --model or model=…"
Changes = tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]


def changed(scene: Scene, mask: int | None) -> list[Changes]:
    """Places and new values of each step. A film begins with masks, or without a mask with nothing, and with what was
    given."""
    before = np.full(scene.frames.shape[1], -1 if mask is None else mask)
    before[scene.given] = scene.frames[0][scene.given]
    steps = []
    for frame in scene.frames:
        places = np.flatnonzero(frame != before)
        steps.append((places, frame[places]))
        before = frame
    return steps


def packed(material: Material) -> dict[str, Any]:
    """All scenes, and how tokens look."""
    view = material.view
    assert view is not None
    tokens = {
        int(token)
        for scenes in material.scenes.values()
        for scene in scenes
        for array in (scene.frames, scene.others)
        for token in np.unique(array)
    }
    return {
        "kind": view.kind,
        "mask": view.mask,
        "values": view.values,
        "length": material.clock.length,
        "symbols": view.symbols(tokens),
        **view.settings,
        "scenes": [
            {"count": count, "strategy": scene.strategy, **_packed(scene, view.mask)}
            for count, scenes in material.scenes.items()
            for scene in scenes
        ],
    }


def _packed(scene: Scene, mask: int | None) -> dict[str, Any]:
    return {
        "nfe": scene.nfe,
        "times": [round(time, 4) for time in scene.times],
        "given": [scene.given.tolist(), scene.frames[-1][scene.given].tolist()],
        "steps": [[places.tolist(), values.tolist()] for places, values in changed(scene, mask)],
        "others": scene.others.tolist(),
    }
