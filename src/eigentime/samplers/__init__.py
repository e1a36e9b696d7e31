"""Take steps: one loop that walks any grid with unequal steps, and the samplers that plug into it."""

from eigentime.samplers.base import Sampler
from eigentime.samplers.blockwise import generate_blocks, generate_windows
from eigentime.samplers.chosen import ByPosterior, EntropyBounded, Klass, Remasking, Threshold
from eigentime.samplers.corrected import PredictorCorrector
from eigentime.samplers.loop import SAMPLERS, Progress, SampleInfo, make_sampler, run

__all__ = [
    "SAMPLERS",
    "ByPosterior",
    "EntropyBounded",
    "Klass",
    "PredictorCorrector",
    "Progress",
    "Remasking",
    "SampleInfo",
    "Sampler",
    "Threshold",
    "generate_blocks",
    "generate_windows",
    "make_sampler",
    "run",
]
