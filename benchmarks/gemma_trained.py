"""What self-conditioning does, on a DiffusionGemma that was trained: tiny, on a Markov chain whose law is known.

python benchmarks/gemma_trained.py   writes results/gemma.json: a network of the real class with self-conditioning in
half of its training steps, then canvases given prompts, drawn with each of the three kinds along equal and measured
steps. Judges know the chain: nats per token under its law above the data's own, and how far the pairs of neighbouring
tokens are from it, which a sampler that repeats itself cannot hide.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from provenance import save
from torch import Tensor

import eigentime as et
from eigentime.engines.examples import tiny_diffusion_gemma

WORDS, PROMPT, CANVAS = 24, 8, 16
SPECIAL = 3
"""Token ids that the network has beyond the chain's."""
SMOOTH = 0.01
"""Share of noise that judges allow for, so that no token is impossible."""
MODES = ("off", "once", "previous")
STEPS = (2, 4, 8, 16)
BATCH, GROUPS = 64, 16


def chain_of(seed: int) -> et.MarkovChain:
    """Each word has a few that like to follow it."""
    weights = torch.empty(WORDS, WORDS).exponential_(generator=torch.Generator().manual_seed(seed)) ** 4
    process = et.Process(et.Uniform(WORDS), et.LogLinear())
    return et.MarkovChain(
        torch.full((WORDS,), 1 / WORDS), weights / weights.sum(1, keepdim=True), PROMPT + CANVAS, process
    )


def trained(chain: et.MarkovChain, updates: int, seed: int) -> Any:
    """Cross-entropy of the clean canvas at a random α; in half of the updates the network is told what it thinks."""
    width = {"hidden_size": 64, "intermediate_size": 128, "moe_intermediate_size": 64}
    network = tiny_diffusion_gemma(CANVAS, WORDS + SPECIAL, 1.0, seed, head_dim=32, global_head_dim=32, **width)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_("vision" not in name)
    rate, draw = 3e-3, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=rate)
    annealed = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=updates, pct_start=0.05)
    for update in range(updates):
        rows = chain.draw(BATCH, seed * updates + update)
        context, clean = rows[:, :PROMPT], rows[:, PROMPT:]
        known = torch.rand(clean.shape, generator=draw) < torch.rand(BATCH, 1, generator=draw)
        canvas = torch.where(known, clean, torch.randint(WORDS + SPECIAL, clean.shape, generator=draw))
        told = None
        if update % 2:
            with torch.no_grad():
                told = network(input_ids=context, decoder_input_ids=canvas).logits
        found = network(input_ids=context, decoder_input_ids=canvas, self_conditioning_logits=told).logits
        loss = torch.nn.functional.cross_entropy(found.flatten(0, 1), clean.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        annealed.step()
        if not update % 100:
            print(f"update {update}: {loss.item():.3f} nats per token", flush=True)
    return network.eval()


def judged(chain: et.MarkovChain, context: Tensor, canvas: Tensor) -> dict[str, Any]:
    """Nats per token under the chain's law, KL per token of the pairs from it, and the share of words it has not."""
    law = torch.full((WORDS, WORDS + SPECIAL), SMOOTH / (WORDS + SPECIAL), dtype=torch.float64)
    law[:, :WORDS] += (1 - SMOOTH) * chain.transition.double()
    before = torch.cat([context[:, -1:], canvas[:, :-1]], 1)
    fits = before < WORDS  # what follows a word that the chain has not says nothing
    nats = -law[before.clamp(max=WORDS - 1), canvas].log()

    def mean(rows: Tensor) -> float:
        return float(nats[rows][fits[rows]].mean())

    def pairs(rows: Tensor) -> float:
        seen = torch.zeros_like(law)
        here = fits[rows]
        seen.index_put_((before[rows][here], canvas[rows][here]), torch.ones((), dtype=seen.dtype), accumulate=True)
        share, own = seen / seen.sum(), seen / seen.sum(1, keepdim=True).clamp(min=1)
        return float(torch.where(seen > 0, share * (own / law).log(), 0.0).sum())

    return {
        "nats": jackknifed(mean, len(canvas)),
        "pairs": jackknifed(pairs, len(canvas)),
        "foreign": float((canvas >= WORDS).double().mean()),
    }


def jackknifed(what: Callable[[Tensor], float], count: int) -> dict[str, float]:
    """A statistic of sequences and its standard error, leaving out one group after the other."""
    group = torch.arange(count) % GROUPS
    left_out = torch.tensor([what((group != g).nonzero().squeeze(1)) for g in range(GROUPS)], dtype=torch.float64)
    spread = (left_out - left_out.mean()).square().sum() * (GROUPS - 1) / GROUPS
    return {"mean": what(torch.arange(count)), "stderr": float(spread.sqrt())}


def main() -> None:
    """Train, measure, draw and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--budget", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    settings = vars(parser.parse_args())
    seed, began = settings["seed"], time.perf_counter()
    chain = chain_of(seed)
    network = trained(chain, settings["updates"], seed)
    data = chain.draw(2 * settings["samples"], 10**6 + seed)
    measured, asked = data[: settings["samples"]], data[settings["samples"] :, :PROMPT]
    models = {how: et.gemma.model(network, how) for how in MODES}
    clocks = {
        how: et.measure(
            models[how],
            measured[:, PROMPT:],
            cond=measured[:, :PROMPT],
            budget=settings["budget"] * models[how].passes,
            tolerance=0.0,
        )
        for how in MODES[:2]
    }
    rows = []
    for steps in STEPS:
        for strategy in ("uniform", "ods"):
            for how, model in models.items():
                clock = clocks.get(
                    how, clocks["off"]
                )  # looking back cannot be measured: it walks along the grid of "off"
                grid = et.schedule(clock, strategy, steps=steps)
                error = et.path_error(clock, grid) if how in clocks else None
                x = et.sample(model, grid, len(asked), cond=asked, seed=seed + 1, batch_size=128)
                row = {"steps": steps, "strategy": strategy, "self_conditioning": how, "nfe": x.nfe}
                row |= {"path_error": {"mean": error.mean, "stderr": error.stderr} if error else None}
                rows.append(row | judged(chain, asked, x))
                print(rows[-1], flush=True)
    real = judged(chain, asked, data[settings["samples"] :, PROMPT:])
    known = {"words": WORDS, "prompt": PROMPT, "canvas": CANVAS, "smooth": SMOOTH, "real": real}
    known["parameters"] = sum(parameter.numel() for parameter in network.parameters())
    known["measuring_evaluations"] = {how: clock.evaluations for how, clock in clocks.items()}
    save("gemma.json", {**known, "rows": rows, "seconds": time.perf_counter() - began}, **settings)


if __name__ == "__main__":
    main()
