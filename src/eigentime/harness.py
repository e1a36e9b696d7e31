"""Masked language models in the LM Evaluation Harness, so that accuracy can be read against network evaluations.

Importing this module registers the model type `eigentime`:

    import eigentime.harness, lm_eval
    arguments = "pretrained=GSAI-ML/LLaDA-8B-Instruct,steps=32,length=4096,trust_remote_code=True"
    lm_eval.simple_evaluate("eigentime", model_args=arguments, tasks=["gsm8k"])
"""

import copy
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.models import Model
from eigentime.models.base import posterior_rows
from eigentime.models.placement import check_device
from eigentime.process.randomness import Purpose, uniforms
from eigentime.report.progress import progress_bar
from eigentime.samplers import Shaping, generate_blocks
from eigentime.schedules import Schedule

try:
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
except ImportError:
    raise EigentimeError("The evaluation harness needs lm-eval: pip install 'eigentime[eval]'.") from None

LOG_ZERO = -1e4
"""Of a token that the model thinks impossible."""


@register_model("eigentime")
class MaskedHarness(LM):  # type: ignore[misc]
    """A masked language model whose answers are drawn along a schedule and whose likelihoods are bounded by ELBOs.

    pretrained    what `et.load` takes, and `length`, for networks that take any
    steps         network evaluations for a whole answer, shared by its blocks
    strategy      a fixed schedule (uniform, cosine), or a file that a schedule of so many steps a block was saved to
    block_length  tokens of a block (default: those that the network was trained in, else the whole answer at once)
    mc_samples    noisy copies for every likelihood
    temperature   of the answers, where a task's own generation settings do not say (`do_sample: false` means 0)
    device        where the network goes
    """

    def __init__(
        self,
        pretrained: str | Model,
        tokenizer: Any = None,
        length: int | None = None,
        steps: int = 32,
        strategy: str = "uniform",
        block_length: int | None = None,
        max_gen_toks: int = 128,
        mc_samples: int = 32,
        batch_size: int = 8,
        max_batch_size: int | None = None,
        temperature: float = 1.0,
        device: str | None = None,
        seed: int = 0,
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__()
        numbers = {"steps": steps, "max_gen_toks": max_gen_toks, "mc_samples": mc_samples, "batch_size": batch_size}
        for what, value in numbers.items():
            if not str(value).isdigit() or int(value) < 1:
                raise EigentimeError(f"{what} must be a whole number of at least 1, not {value!r}.")
        self.model = (
            pretrained
            if isinstance(pretrained, Model)
            else api.load(pretrained, length=length, trust_remote_code=trust_remote_code)
        )
        if device is not None:
            self.model = self.model.to(check_device(device))
        if self.model.process.kernel.mask is None:
            raise EigentimeError(f"{self.model.name} is not a masked model, which the harness needs.")
        self.tokenizer = tokenizer or _tokenizer(str(pretrained), trust_remote_code)
        self.steps, self.strategy, self.block_length = int(steps), strategy, block_length and int(block_length)
        self.max_gen_toks, self.mc_samples, self.batch_size = int(max_gen_toks), int(mc_samples), int(batch_size)
        self.temperature, self.seed = float(temperature), int(seed)
        self.evaluations = 0
        """Network evaluations of sequences so far."""

    @property
    def tokenizer_name(self) -> str:
        """For the harness's cache."""
        return str(getattr(self.tokenizer, "name_or_path", "tokenizer"))

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """As the tokenizer says."""
        return self.tokenizer.apply_chat_template(
            chat_history, tokenize=False, add_generation_prompt=add_generation_prompt
        )

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """ELBO of each continuation given its context, and whether greedy decoding would give it."""
        results = []
        with progress_bar("Likelihoods", not disable_tqdm) as advance:
            for done, request in enumerate(requests):
                context, continuation = request.args
                before, after = self._encode(context, continuation)
                if len(after) > self.model.length:
                    raise EigentimeError(
                        f"A continuation of {len(after)} tokens is longer than {self.model.name} takes."
                    )
                before = before[max(0, len(before) + len(after) - self.model.length) :]
                results.append((self.elbo(before, after), self._greedy(before, after)))
                advance(done + 1, len(requests))
        return results

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """ELBO of whole texts, window by window; each window is given as much of what precedes it as fits."""
        results = []
        half = max(1, self.model.length // 2)
        for request in requests:
            tokens = torch.tensor(self.tokenizer.encode(request.args[0], add_special_tokens=False), dtype=torch.long)
            total = 0.0
            for start in range(0, len(tokens), half):
                total += self.elbo(tokens[max(0, start - half) : start], tokens[start : start + half])
            results.append(total)
        return results

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Answers, each cut at the first of its stop strings."""
        results = []
        with progress_bar("Generating", not disable_tqdm) as advance:
            for done, request in enumerate(requests):
                context, options = request.args
                length = int(options.get("max_gen_toks", self.max_gen_toks))
                if length > self.model.length:
                    raise EigentimeError(f"An answer of {length} tokens is longer than {self.model.name} takes.")
                prompt = torch.tensor(self.tokenizer.encode(context, add_special_tokens=False), dtype=torch.long)
                prompt = prompt[max(0, len(prompt) + length - self.model.length) :]
                greedy = options.get("do_sample") is False
                temperature = 0.0 if greedy else float(options.get("temperature", self.temperature))
                tokens = self._generate(prompt, length, temperature, seed=self.seed + done)
                text = self.tokenizer.decode(tokens, skip_special_tokens=True)
                stops = options.get("until") or []
                for stop in [stops] if isinstance(stops, str) else stops:
                    text = text.split(stop)[0] if stop else text
                results.append(text)
                advance(done + 1, len(requests))
        return results

    def _generate(self, prompt: Int[Tensor, " p"], length: int, temperature: float, seed: int) -> Int[Tensor, " n"]:
        block = self.block_length or self.model.block or length
        begun = len(prompt) % (self.model.block or 1)  # of a block that the prompt does not fill
        if self.model.block is None and length % block:
            raise EigentimeError(f"An answer of {length} tokens does not split into blocks of {block}.")
        blocks = -(-(begun + length) // block)
        model = _resized(self.model, len(prompt) - begun + blocks * block)
        if self.steps < blocks:
            raise EigentimeError(f"{self.steps} steps are too few for {blocks} blocks: each takes at least one.")
        steps = self.steps // blocks
        schedules = [self._schedule(min(steps, block))] * blocks
        tokens, nfe = generate_blocks(
            model, schedules, prompt[None], seed=seed, shaping=Shaping(temperature), normalise=True
        )
        self.evaluations += round(nfe)
        return tokens[0, len(prompt) : len(prompt) + length]

    def _schedule(self, steps: int) -> Schedule:
        if self.strategy in ("uniform", "cosine", "fisher-rao"):
            return api.schedule(self.strategy, steps=steps, process=self.model.process)
        return Schedule.load(self.strategy)

    def elbo(self, before: Int[Tensor, " p"], after: Int[Tensor, " n"]) -> float:
        """Σ over masked tokens of ln p, times n/(how many are masked), averaged over numbers of masks that are spread
        evenly over 1 … n: a lower bound on ln p(after | before), as LLaDA evaluates it."""
        n = len(after)
        if not n:
            return 0.0
        truth = torch.cat([before, after])
        count = self.mc_samples if n > 1 else 1  # one token: the bound is exact
        shift = uniforms(self.seed, Purpose.TIME, 1, 1).item()
        masks = 1 + ((shift + torch.arange(count, dtype=torch.float64) / count) % 1 * n).long()
        rank = uniforms(self.seed, Purpose.POSITIONS, count, n).argsort(1).argsort(1)
        hidden = torch.zeros(count, len(truth), dtype=torch.bool)
        hidden[:, len(before) :] = rank < masks[:, None]
        logs = self._log_probabilities(truth.expand(count, -1), hidden)
        per_copy = torch.zeros(count, dtype=torch.float64).index_add_(0, hidden.nonzero()[:, 0], logs)
        return (per_copy * n / masks).mean().item()

    def _log_probabilities(self, truth: Int[Tensor, "b n"], hidden: Bool[Tensor, "b n"]) -> Tensor:
        """ln p of the true token at every hidden place."""
        mask = self.model.process.mask
        found = []
        for index in torch.arange(len(truth)).split(self.batch_size):
            asked, tokens = hidden[index], truth[index]
            share = 1 - asked.double().mean(1)
            times = self.model.process.noise.time_of_alpha(share)
            shown = torch.where(asked, mask, tokens)
            self.evaluations += len(index)
            for piece, logs in self.model.evaluate(shown, times, asked).pieces():
                at = times[asked.nonzero()[:, 0][piece]]
                rows = posterior_rows(self.model, logs, shown[asked][piece], at, normalise=True)
                known = rows.gather(1, tokens[asked][piece].to(rows.device)[:, None]).squeeze(1)
                found.append(known)
        return torch.cat(found).cpu().double().log().clamp(min=LOG_ZERO)

    def _greedy(self, before: Int[Tensor, " p"], after: Int[Tensor, " n"]) -> bool:
        """Whether revealing the surest token again and again gives the continuation; stops at the first other one."""
        kernel = self.model.process.kernel
        assert kernel.mask is not None
        shown = torch.cat([before, torch.full_like(after, kernel.mask)])[None]
        for _ in range(len(after)):
            hidden = kernel.active(shown)
            time = self.model.process.noise.time_of_alpha(1 - hidden.double().mean(1))
            self.evaluations += 1
            found = []
            for piece, logs in self.model.evaluate(shown, time, hidden).pieces():
                found.append(posterior_rows(self.model, logs, shown[hidden][piece], time[0], normalise=True).max(1))
            sure, value = (torch.cat(parts).cpu() for parts in zip(*found, strict=True))
            place = hidden[0].nonzero().squeeze(1)[sure.argmax()]
            if value[sure.argmax()] != after[place - len(before)]:
                return False
            shown[0, place] = after[place - len(before)]
        return True

    def _encode(self, context: str, continuation: str) -> tuple[Int[Tensor, " p"], Int[Tensor, " n"]]:
        """Both parts; a space between them belongs to the continuation."""
        spaces = len(context) - len(context.rstrip())
        if spaces:
            continuation, context = context[-spaces:] + continuation, context[:-spaces]
        whole = self.tokenizer.encode(context + continuation, add_special_tokens=False)
        before = self.tokenizer.encode(context, add_special_tokens=False) if context else []
        return torch.tensor(before, dtype=torch.long), torch.tensor(whole[len(before) :], dtype=torch.long)


def _resized(model: Model, length: int) -> Model:
    """The same network for sequences of another length."""
    other = copy.copy(model)
    other.length = length
    return other


def _tokenizer(name: str, trust_remote_code: bool) -> Any:
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=trust_remote_code)
    except Exception as error:
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        raise EigentimeError(f"{name} comes without a tokenizer that loads ({detail}); pass tokenizer=….") from None
