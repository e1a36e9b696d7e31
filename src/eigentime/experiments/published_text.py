"""The paper's language protocol on a published checkpoint: generative perplexity under GPT-2 Large.

1,024 sequences of the model's length a cell, schedules measured on OpenWebText, perplexity in SEDD's and in MDLM's
convention, and beside it entropy and variety. It needs the hub (or folders of the same layout) and a large machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from eigentime import api
from eigentime.data.openwebtext import openwebtext, packed
from eigentime.errors import EigentimeError
from eigentime.experiments.compare import compare
from eigentime.experiments.experiment import Desk, Experiment, described, four_curves
from eigentime.experiments.kept import remembered
from eigentime.experiments.kept_jys import kept_jys
from eigentime.experiments.speedup import speedups
from eigentime.experiments.trial import Judge
from eigentime.models import Model
from eigentime.report.figures import save_figure
from eigentime.report.quality import quality_figure
from eigentime.samplers import make_sampler
from eigentime.schedules import check_steps
from eigentime.tasks.language_judges import LanguageJudge, language_judge, mauve, tokenizer_of
from eigentime.tasks.metrics import Estimate, distinct_grams, of_the_whole, over_sequences, sequence_entropy

STRATEGIES = ["uniform", "jys", "eds", "wds", "ods"]
STEPS = [16, 32, 64, 128, 256, 512, 1024]
JUDGE, TOKENS = "gpt2-large", "gpt2"
GRAM = 3
"""Tokens in the strings that are counted for variety."""


@dataclass(frozen=True, kw_only=True)
class PublishedText(Experiment):
    """The strategies on a checkpoint."""

    checkpoint: str
    samples: int = 1024
    steps: Sequence[int] = tuple(STEPS)
    strategies: Sequence[str] = tuple(STRATEGIES)
    sampler: str = "ancestral"
    judge: str = JUDGE
    tokenizer: str = TOKENS
    """Of the checkpoint: a hub id or a folder."""
    length: int | None = None
    """Tokens of a sequence, for a checkpoint that takes any number."""
    own_samples: bool = False
    """Measure on the model's own samples in place of OpenWebText."""
    with_mauve: bool = False
    """Also MAUVE between samples and data, on the judge's features."""
    budget: int = 1024
    jys_samples: int = api.JYS_SEQUENCES
    trust_remote_code: bool = False
    stem = "published"

    def check(self) -> None:
        if self.samples < 4:
            raise EigentimeError(f"samples must be at least 4, not {self.samples}.")
        for count in self.steps:
            check_steps(count)
            if "jys" in self.strategies and count & (count - 1):
                raise EigentimeError(f"JYS makes powers of two only; leave out {count} steps.")
        if not make_sampler(self.sampler).scheduled:
            raise EigentimeError(f"{self.sampler} takes no schedule, so there is nothing to compare.")
        known, values = len(self._words), len(self._network.process.kernel.values)
        if not values / 2 <= known <= values:
            raise EigentimeError(
                f"{self.tokenizer} has {known} tokens and {self.checkpoint} {values}: name the checkpoint's own with "
                "--tokenizer."
            )

    @cached_property
    def _read(self) -> LanguageJudge:
        return language_judge(self.judge)

    @cached_property
    def _words(self) -> Any:
        return tokenizer_of(self.tokenizer)

    @cached_property
    def _network(self) -> Model:
        return api.load(self.checkpoint, length=self.length, trust_remote_code=self.trust_remote_code)

    def results(self, desk: Desk) -> dict[str, Any]:
        network, data = self._network, self._data(desk)
        clock = api.measure(network, data, budget=self.budget, seed=self.seed, progress=desk.progress)
        jys = None
        if "jys" in self.strategies:
            kept = desk.out / "jys.json"
            jys = kept_jys(network, clock, data[: self.jys_samples], None, self.steps, kept, desk.progress)
        rows = compare(
            network,
            self.strategies,
            self.steps,
            samples=self.samples,
            sampler=self.sampler,
            clock=clock,
            data=data,
            jys=jys,
            jys_samples=self.jys_samples,
            seed=self.seed,
            metrics=self._metrics(data),
            keep=desk.keep("published"),
            made_with={
                "judge": self.judge,
                "tokenizer": self.tokenizer,
                "length": self.length,
                "mauve": self.with_mauve,
            },
            progress=desk.progress,
        )
        return {
            "checkpoint": self.checkpoint,
            "judge": self.judge,
            "data": "own samples" if self.own_samples else "OpenWebText",
            "data_entropy": sequence_entropy(data).mean().item(),
            "samples": self.samples,
            "evaluations": clock.evaluations,
            "rows": rows,
            "speedup": speedups(rows, "perplexity_mdlm", self.seed),
            "dynamics": described(four_curves(clock)),
        }

    def draw(self, content: dict[str, Any], out: Path) -> None:
        rows = content["rows"]
        titles = {
            name: f"generative perplexity, {self.judge} ({name.removeprefix('perplexity_').upper()}'s convention)"
            for name in rows[0]["metrics"]
            if name.startswith("perplexity")
        }
        titles["entropy"] = "entropy of a sequence's tokens, nats"
        levels = {"entropy": {"data": content["data_entropy"]}}
        save_figure(quality_figure({self.checkpoint: rows}, titles, levels), out / "published.png")

    def _data(self, desk: Desk) -> Int[Tensor, "n length"]:
        """OpenWebText, or samples of as many steps as the model has tokens, drawn once: the costliest part of a run
        without data."""
        model, count = self._network, max(64, self.budget // 4)
        if not self.own_samples:
            return packed(openwebtext(), self._words, count, model.length)

        def make() -> dict[str, Any]:
            many = api.schedule("uniform", steps=model.length, model=model)
            return {"tokens": api.sample(model, many, count, seed=self.seed, progress=desk.progress).tolist()}

        made_of = repr((model.name, model.length, count, self.seed))
        return torch.tensor(remembered(desk.out / "own-samples.json", made_of, make)["tokens"])

    def _metrics(self, data: Int[Tensor, "n length"]) -> Judge:
        """Perplexities in both conventions where they can be, MAUVE if asked for, entropy and variety."""
        read, words, seed = self._read, self._words, self.seed
        same_tokens = words.get_vocab() == read.tokenizer.get_vocab()
        level = sequence_entropy(data).mean().item()
        real = read.features(list(map(words.decode, data.tolist()))) if self.with_mauve else None

        def metrics(x: Int[Tensor, "n length"]) -> dict[str, Estimate]:
            entropy = sequence_entropy(x)
            found = {"perplexity_mdlm": read.perplexity(x, "mdlm", words.decode)}
            if same_tokens:
                found["perplexity_sedd"] = read.perplexity(x, "sedd")
            if real is not None:
                found["mauve"] = Estimate(
                    mauve(read.features(list(map(words.decode, x.tolist()))), real, seed), float("nan")
                )
            return found | {
                "entropy": over_sequences(entropy),
                "entropy_gap": of_the_whole(entropy, lambda part: abs(part.mean().item() - level)),
                "distinct": distinct_grams(x, GRAM),
            }

        return metrics
