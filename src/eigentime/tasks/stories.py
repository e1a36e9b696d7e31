"""Stories: 128 tokens of children's stories whose true law is known, a published language model's.

Text then has what only chains had: the exact likelihood of any sequence, and the exact entropy of the data.
"""

from dataclasses import dataclass, replace

from jaxtyping import Float, Int
from torch import Tensor

from eigentime.models.ddit import DDiTConfig
from eigentime.process import LogLinear, Process
from eigentime.tasks.metrics import Estimate, distinct_grams, of_the_whole, over_sequences, sequence_entropy, surprise
from eigentime.tasks.story_law import LENGTH, Stories, stories
from eigentime.tasks.task import Advance, LawTask, kernel_over, seed_of
from eigentime.training import Recipe

SIZE = 2048
GRAM = 3
"""Length of the strings of tokens that are counted for variety."""


@dataclass(frozen=True, kw_only=True)
class StoriesTask(LawTask):
    """Data drawn from the storyteller, and kept."""

    @property
    def law(self) -> Stories:
        return stories()

    def draw_part(
        self, part: str, count: int, seed: int, advance: Advance = lambda done, total: None
    ) -> Int[Tensor, "count 128"]:
        return self.law.drawn(count, seed_of(part, seed), advance).tokens


def judged(x: Int[Tensor, "n 128"], log_p: Float[Tensor, " n"] | None = None) -> dict[str, Estimate]:
    """Nats unlikelier than data under the true law, and beside them what repetition would give away; ln p of the
    sequences is asked of the law where it is not known."""
    entropy, real = sequence_entropy(x), stories().about["token_entropy"]["mean"]
    return {
        "surprise": surprise(stories(), x, log_p),
        "entropy_gap": of_the_whole(entropy, lambda part: abs(part.mean().item() - real)),
        "entropy": over_sequences(entropy),
        "distinct": distinct_grams(x, GRAM),
    }


def process(kernel: str) -> Process:
    """The kept tokens, and MDLM's log-linear noise."""
    return Process(kernel_over(SIZE, kernel), LogLinear())


MASKED = DDiTConfig(size=SIZE + 1, width=192, blocks=6, heads=6, cond_width=32)
MDLM = Recipe("stories", process("absorbing"), LENGTH, MASKED, steps=18_000, batch=16, learning_rate=1e-3)
SEDD = replace(
    MDLM,
    name="stories-sedd",
    network=replace(MASKED, head="score", time_conditioned=True),
    start_from="stories",
    steps=6_400,
    batch=8,
    learning_rate=7e-4,
    sequences=64 * 256,
)
UDLM = replace(
    MDLM,
    name="stories-uniform",
    process=process("uniform"),
    network=replace(MASKED, size=SIZE, head="cavity", time_conditioned=True),
    start_from="stories",
    steps=8_000,
    batch=8,
    learning_rate=7e-4,
    sequences=64 * 256,
)
TASK = StoriesTask(
    metrics=judged,
    fidelity="surprise",
    diversity="entropy_gap",
    name="stories",
    about="128 tokens of children's stories, drawn from a published language model",
    recipes=(MDLM, SEDD, UDLM),
    training_sequences=640 * 256,
)
