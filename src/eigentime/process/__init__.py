"""The forward chain: kernels and noise curves, corrupting, score ↔ posterior, and every token law P(x_s,i | x_t).

No networks live here; measuring and sampling both build on it.
"""

from eigentime.process.absorbing import Absorbing
from eigentime.process.kernel import Kernel
from eigentime.process.mixture import Mixture
from eigentime.process.noise import Cosine, DuoCosine, Exponential, Geometric, Linear, LogLinear, Noise, noise_from_spec
from eigentime.process.process import Process, process_from_spec
from eigentime.process.rate_matrix import RateMatrix
from eigentime.process.uniform import Uniform

__all__ = [
    "Absorbing",
    "Cosine",
    "DuoCosine",
    "Exponential",
    "Geometric",
    "Kernel",
    "Linear",
    "LogLinear",
    "Mixture",
    "Noise",
    "Process",
    "RateMatrix",
    "Uniform",
    "noise_from_spec",
    "process_from_spec",
]
