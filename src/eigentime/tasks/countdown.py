"""Countdown: 256 tokens that count down to 0 and then restart anywhere, from Jump Your Steps."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from eigentime.models import MarkovChain, Model
from eigentime.models.ddit import DDiTConfig
from eigentime.process import LogLinear, Process
from eigentime.tasks.metrics import Estimate, hellinger, histogram, of_the_whole, over_sequences
from eigentime.tasks.task import ExactTask, kernel_over
from eigentime.training import Recipe

VALUES, LENGTH = 32, 256


def transition() -> Float[Tensor, "values values"]:
    """v → v-1, and 0 → anything."""
    rows = torch.zeros(VALUES, VALUES, dtype=torch.float64)
    rows[0] = 1 / VALUES
    rows[torch.arange(1, VALUES), torch.arange(VALUES - 1)] = 1.0
    return rows


def start() -> Float[Tensor, " values"]:
    """The first token is uniform, as is every token after a 0."""
    return torch.full((VALUES,), 1 / VALUES, dtype=torch.float64)


def process(kernel: str) -> Process:
    """Log-linear noise, as SEDD, MDLM and Jump Your Steps."""
    return Process(kernel_over(VALUES, kernel), LogLinear())


def exact(kernel: str) -> Model:
    """The exact model by forward–backward."""
    return MarkovChain(start(), transition(), LENGTH, process(kernel), name="countdown-exact")


def unigrams() -> Float[Tensor, " values"]:
    """The true frequencies of the values in a sequence."""
    law, total, step = start(), torch.zeros(VALUES, dtype=torch.float64), transition()
    for _ in range(LENGTH):
        total, law = total + law, law @ step
    return total / LENGTH


def violations(x: Int[Tensor, "n length"]) -> Bool[Tensor, "n pairs"]:
    """Which of the transitions break the rule: prev > 0 and cur ≠ prev - 1."""
    return (x[:, :-1] > 0) & (x[:, 1:] != x[:, :-1] - 1)


def violations_jys(x: Int[Tensor, "n length"]) -> Bool[Tensor, "n length"]:
    """Violations as the code of Jump Your Steps counts them: it forgets the previous token after every comparison with
    a non-zero one, so it looks at about every other transition and reads about half the true rate."""
    flags = torch.zeros_like(x, dtype=torch.bool)
    previous = torch.zeros_like(x[:, 0])
    for i in range(x.shape[1]):
        compared = previous != 0
        flags[:, i] = compared & (x[:, i] != previous - 1)
        previous = torch.where(compared, 0, x[:, i])
    return flags


def run_starts(x: Int[Tensor, "n length"]) -> Int[Tensor, " k"]:
    """The tokens that begin a run: the first one, and each after a 0."""
    return torch.cat([x[:, 0], x[:, 1:][x[:, :-1] == 0]])


def run_lengths(x: Int[Tensor, "n length"]) -> Int[Tensor, " k"]:
    """How long the runs between two zeros are; those that a sequence's ends cut are left out."""
    sequence, position = (x == 0).nonzero(as_tuple=True)
    together = sequence[1:] == sequence[:-1]
    return (position[1:] - position[:-1])[together]


def run_lengths_distance(x: Int[Tensor, "n length"]) -> Estimate:
    """Hellinger distance of run lengths from the truth: a run that starts at v has v + 1 tokens."""

    def distance(part: Int[Tensor, "m length"]) -> float:
        # a whole run of k tokens fits between the ends of a sequence in about LENGTH - k places
        truth = torch.cat([torch.zeros(1), (LENGTH - 1.0 - torch.arange(1, VALUES + 1))]).double()
        return hellinger(histogram(run_lengths(part).clamp(max=VALUES), VALUES + 1), truth / truth.sum())

    return of_the_whole(x, distance)


def metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
    """Fidelity (violation rate, true and as JYS counts it) and diversity (Hellinger distance of the frequencies of all
    tokens and of run starts from the truth): fidelity alone rewards collapse."""
    truth = unigrams()
    return {
        "violation": over_sequences(violations(x).double().mean(1)),
        "violation_jys": over_sequences(violations_jys(x).double().mean(1)),
        "unigrams": of_the_whole(x, lambda part: hellinger(histogram(part, VALUES), truth)),
        "run_starts": of_the_whole(x, lambda part: hellinger(histogram(run_starts(part), VALUES), start())),
    }


MASKED = DDiTConfig(size=VALUES + 1, width=64, blocks=4, heads=4, cond_width=32)
SCORED = replace(MASKED, head="score", time_conditioned=True)
REDRAWN = replace(MASKED, size=VALUES, head="cavity", time_conditioned=True)
MDLM = Recipe("countdown", process("absorbing"), LENGTH, MASKED, steps=6300, batch=16, learning_rate=5e-3)
SEDD = replace(MDLM, name="countdown-sedd", network=SCORED, start_from="countdown", steps=1500, learning_rate=1e-3)
UDLM = replace(
    MDLM, name="countdown-uniform", process=process("uniform"), network=REDRAWN, steps=7000, learning_rate=4e-3
)
TASK = ExactTask(
    metrics=metrics,
    fidelity="violation",
    diversity="unigrams",
    name="countdown",
    about="256 tokens of 32 values that count down",
    exact=exact,
    recipes=(MDLM, SEDD, UDLM),
)
