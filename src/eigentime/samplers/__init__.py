"""Take steps: one loop that walks any grid with unequal steps, and the samplers that plug into it."""

from eigentime.samplers.loop import SAMPLERS, Progress, SampleInfo, make_sampler, run

__all__ = ["SAMPLERS", "Progress", "SampleInfo", "make_sampler", "run"]
