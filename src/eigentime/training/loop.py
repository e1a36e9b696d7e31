"""The training loop: AdamW on one of the losses, with a running average of the weights.

Every random number is a function of (seed, step, sequence), and the whole state is saved now and then, so that a run
killed at any moment goes on to the same weights, bit for bit on the CPU.
"""

import copy
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from eigentime.alone import alone
from eigentime.data.streams import Reading
from eigentime.errors import EigentimeError
from eigentime.files import make_folder, write_atomically
from eigentime.models.denoiser import Denoiser
from eigentime.models.trained import Trained, build, save_folder
from eigentime.process.noise import Times
from eigentime.process.randomness import Purpose, uniforms
from eigentime.ranks import launched
from eigentime.training.checkpoint import load_checkpoint, save_checkpoint
from eigentime.training.losses import LOSSES
from eigentime.training.recipe import Recipe
from eigentime.training.start import adopt

SAVE_SECONDS = 60.0
EVALUATIONS = 20
EVALUATION_BATCH = 64
LOG = "log.json"


class Interrupted(Exception):
    """The run was asked to stop; its state is saved."""


def train(
    recipe: Recipe,
    data: Integer[Tensor, "n length"] | Iterable[Any],
    held_out: Integer[Tensor, "m length"],
    folder: str | Path,
    *,
    start: Denoiser | None = None,
    advance: Callable[[int, int, dict[str, float]], None] = lambda step, steps, latest: None,
) -> Trained:
    """Run a recipe, or go on with it where `folder` holds its checkpoint, and write the averaged weights there.

    data       clean training sequences (N, L), of which batches are drawn with replacement; or a stream of sequences or
               batches, a `datasets` one or any iterable, which is taken as it comes: shuffle it before
    held_out   sequences for the evaluation ELBO
    start      a network whose weights are taken over first
    advance    told after every step: steps done, steps in all, latest losses
    """
    accelerator = _accelerator()
    folder = Path(folder)
    torch.manual_seed(recipe.seed)
    network = build(recipe.network)
    if start is not None:
        adopt(network, start)
    average = copy.deepcopy(network).eval().to(accelerator.device)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=recipe.learning_rate, betas=recipe.betas, weight_decay=recipe.weight_decay
    )
    resumed = load_checkpoint(folder, network, average, optimizer, recipe.describe())
    progress = resumed or {"recipe": recipe.describe(), "step": 0, "seconds": 0.0, "log": []}
    model, optimizer = accelerator.prepare(network, optimizer)
    count, rest = divmod(recipe.batch, accelerator.num_processes)
    if rest:
        raise EigentimeError(
            f"A batch of {recipe.batch} does not split over {accelerator.num_processes} processes; change the batch."
        )
    first = accelerator.process_index * count
    rows = data if isinstance(data, Tensor) else Reading(data)
    loss_of = LOSSES[recipe.network.head]
    recent: list[float] = progress.setdefault("recent", [])  # a checkpoint of version 0.1 does not hold them
    began = saved = time.perf_counter()

    def keep() -> None:
        nonlocal began
        progress["seconds"], began = progress["seconds"] + time.perf_counter() - began, time.perf_counter()
        if accelerator.is_main_process:
            save_checkpoint(folder, accelerator.unwrap_model(model), average, optimizer.optimizer, progress)
            write_atomically(folder / LOG, json.dumps(progress["log"], indent=1) + "\n")

    make_folder(folder)
    with alone(folder if accelerator.is_main_process else None), _stop_requests() as asked:
        model.train()
        for step in range(progress["step"], recipe.steps):
            torch.manual_seed(recipe.seed + step)  # dropout
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate_at(step)
            x0, x, t = draw_batch(recipe, rows, step, first, count)
            loss = loss_of(_on(model, accelerator.device), recipe.process, x0, x, t, recipe.given).mean()
            optimizer.zero_grad()
            accelerator.backward(loss / (recipe.length - recipe.given))
            accelerator.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            _update(average, accelerator.unwrap_model(model), min(recipe.ema, (1 + step) / (10 + step)))
            mine = torch.stack([loss.detach(), loss.new_tensor(float(asked.is_set()))])
            latest_loss, stopping = _over_processes(accelerator, mine).tolist()
            recent.append(latest_loss)
            progress["step"] = step + 1
            last = step + 1 == recipe.steps
            if last or (step + 1) % max(1, recipe.steps // EVALUATIONS) == 0:
                mean, stderr = evaluate(average, recipe, held_out)
                training = sum(recent) / len(recent)
                progress["log"].append({"step": step + 1, "training": training, "nelbo": mean, "stderr": stderr})
                recent.clear()
            latest = progress["log"][-1] if progress["log"] else {}
            advance(step + 1, recipe.steps, {"loss": latest_loss, **latest})
            if last or stopping or time.perf_counter() - saved > SAVE_SECONDS:
                keep()
                saved = time.perf_counter()
            if stopping and not last:
                raise Interrupted
    about = {"recipe": recipe.describe(), "seconds": round(progress["seconds"]), "log": progress["log"][-1]}
    trained = Trained(average, recipe.process, recipe.length, recipe.name, about)
    if accelerator.is_main_process:
        save_folder(trained, folder)
    return trained


def draw_batch(
    recipe: Recipe, data: Integer[Tensor, "n length"] | Reading, step: int, first: int, count: int
) -> tuple[Int[Tensor, "b length"], Int[Tensor, "b length"], Times]:
    """Sequences first … first+count-1 of a step's batch, clean and noisy, with their times.

    The times of a batch are low-discrepancy, (u + k/batch) mod 1: one draw in every stretch of the time axis.
    """
    seed, length = recipe.seed, recipe.length
    if isinstance(data, Reading):
        x0 = data.rows(step * recipe.batch + first, count).long()
    else:
        chosen = uniforms(seed, Purpose.BATCH, count, 1, step=step, first=first).squeeze(1)
        x0 = data[(chosen * len(data)).long()].long()
    t = spaced_times(recipe, step, first, count)
    jump = uniforms(seed, Purpose.CORRUPT, count, length, step=step, first=first)
    replace = uniforms(seed, Purpose.REPLACE, count, length, step=step, first=first)
    return x0, _with_given(recipe, x0, recipe.process.corrupt(x0, t, jump, replace)), t


def _with_given(recipe: Recipe, x0: Int[Tensor, "b length"], x: Int[Tensor, "b length"]) -> Int[Tensor, "b length"]:
    x[:, : recipe.given] = x0[:, : recipe.given]
    return x


def spaced_times(recipe: Recipe, step: int, first: int, count: int) -> Times:
    """Evenly spaced times with one random shift."""
    shift = uniforms(recipe.seed, Purpose.TIME, 1, 1, step=step).squeeze()
    fractions = (shift + torch.arange(first, first + count, dtype=torch.float64) / recipe.batch) % 1.0
    return recipe.first_time + (1 - recipe.first_time) * fractions


def evaluate(network: Denoiser, recipe: Recipe, x0: Integer[Tensor, "m length"]) -> tuple[float, float]:
    """The negative ELBO in nats per sequence and its standard error, with the same noise at every call."""
    values = losses(network, recipe, x0)
    return values.mean().item(), values.std().item() / len(x0) ** 0.5


@torch.no_grad()
def losses(network: Denoiser, recipe: Recipe, x0: Integer[Tensor, "m length"]) -> Float[Tensor, " m"]:
    """An unbiased estimate of each sequence's negative ELBO, with the same noise at every call."""
    count, seed = len(x0), recipe.seed + 1
    shift = uniforms(seed, Purpose.TIME, 1, 1).squeeze()
    t = 1.0 - (shift + torch.arange(count, dtype=torch.float64) / count) % 1.0
    t = t[uniforms(seed, Purpose.BATCH, count, 1).squeeze(1).argsort()]
    jump = uniforms(seed, Purpose.CORRUPT, count, recipe.length)
    replace = uniforms(seed, Purpose.REPLACE, count, recipe.length)
    x = _with_given(recipe, x0.long(), recipe.process.corrupt(x0.long(), t, jump, replace))
    predict = _on(network, next(network.parameters()).device)
    parts = [slice(k, k + EVALUATION_BATCH) for k in range(0, count, EVALUATION_BATCH)]
    loss_of = LOSSES[recipe.network.head]
    values = [loss_of(predict, recipe.process, x0[k].long(), x[k], t[k], recipe.given) for k in parts]
    return torch.cat(values).cpu().double()


def _update(average: Denoiser, network: torch.nn.Module, decay: float) -> None:
    with torch.no_grad():
        for kept, new in zip(average.parameters(), network.parameters(), strict=True):
            kept.lerp_(new, 1 - decay)


def _on(network: torch.nn.Module, device: torch.device) -> Callable[..., Tensor]:
    """The network as the losses call it, its inputs moved to its device."""
    return lambda x, sigma, where: network(x.to(device), sigma.to(device), where.to(device))


def _over_processes(accelerator: Any, numbers: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Means over all processes, so that they agree on when to stop."""
    if accelerator.num_processes == 1:
        return numbers
    means: Tensor = accelerator.reduce(numbers, reduction="mean")
    return means


def _accelerator() -> Any:
    try:
        from accelerate import Accelerator
    except ImportError:
        raise EigentimeError("Training needs accelerate: pip install 'eigentime[train]'.") from None
    # of processes on CPUs it learns only so: each would train by itself
    return Accelerator(cpu=launched() > 1 and not torch.cuda.is_available())


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM wait for the step to end, so that what is saved is whole."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {kind: signal.signal(kind, lambda *_: asked.set()) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
