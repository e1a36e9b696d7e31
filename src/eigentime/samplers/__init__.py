"""Take steps: one loop that walks any grid with unequal steps, and the samplers that plug into it."""

from eigentime.samplers.adaptive import EntropyBounded, Klass, Prefix, Threshold
from eigentime.samplers.apart import Apart
from eigentime.samplers.base import Sampler
from eigentime.samplers.blockwise import generate_blocks, generate_canvases, generate_windows
from eigentime.samplers.candidate import Candidate
from eigentime.samplers.chosen import Confidence, LowestEntropy, Margin
from eigentime.samplers.condition import Condition
from eigentime.samplers.corrected import PredictorCorrector
from eigentime.samplers.factorised import Ancestral, Euler, TauLeaping
from eigentime.samplers.first_hitting import FirstHitting
from eigentime.samplers.loop import Snapshot, run
from eigentime.samplers.order_bounded import OrderBounded
from eigentime.samplers.registry import SAMPLERS, label, make_sampler
from eigentime.samplers.remasking import Remasking
from eigentime.samplers.samples import SampleInfo, Samples
from eigentime.samplers.shaping import Shaping
from eigentime.samplers.trapezoidal import Trapezoidal

__all__ = [
    "SAMPLERS",
    "Ancestral",
    "Apart",
    "Candidate",
    "Condition",
    "Confidence",
    "EntropyBounded",
    "Euler",
    "FirstHitting",
    "Klass",
    "LowestEntropy",
    "Margin",
    "OrderBounded",
    "PredictorCorrector",
    "Prefix",
    "Remasking",
    "SampleInfo",
    "Sampler",
    "Samples",
    "Shaping",
    "Snapshot",
    "TauLeaping",
    "Threshold",
    "Trapezoidal",
    "generate_blocks",
    "generate_canvases",
    "generate_windows",
    "label",
    "make_sampler",
    "run",
]
