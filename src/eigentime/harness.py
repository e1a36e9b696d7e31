"""Masked language models in the LM Evaluation Harness, so that accuracy can be read against network evaluations.

Importing this module registers the model type `eigentime`:

    import eigentime.harness, lm_eval
    arguments = "pretrained=GSAI-ML/LLaDA-8B-Instruct,steps=32,length=4096,trust_remote_code=True"
    results = lm_eval.simple_evaluate("eigentime", model_args=arguments, tasks=["gsm8k"])
    results["config"]["tokens_per_forward"]
"""

import copy
import logging
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from eigentime import api
from eigentime.errors import EigentimeError
from eigentime.models import Model
from eigentime.models.base import posterior_rows
from eigentime.models.placement import check_device
from eigentime.packages import need
from eigentime.process.randomness import Purpose, uniforms
from eigentime.recommend import Recommendation
from eigentime.report.progress import progress_bar
from eigentime.samplers import Candidate, Sampler, Shaping, generate_blocks, make_sampler
from eigentime.schedules import UNMEASURED, Plan, Schedule

try:
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
except ImportError:
    raise EigentimeError("The evaluation harness needs lm-eval: pip install 'eigentime[eval]'.") from None

LOG_ZERO = -1e4
"""Of a token that the model thinks impossible."""
TESTED = ("0.4.13", "0.4.14")
"""Versions of lm_eval: from, and below."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """A prompt to continue."""

    number: int
    prompt: tuple[int, ...]
    length: int
    temperature: float
    stops: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int, float]:
        """Questions of one shape are answered together."""
        return len(self.prompt), self.length, self.temperature


@register_model("eigentime")
class MaskedHarness(LM):  # type: ignore[misc]
    """A masked language model whose answers are drawn along a schedule and whose likelihoods are bounded by ELBOs.

    pretrained    what `et.load` takes, and `length`, for networks that take any
    sampler       by name, with a number after a colon for its first setting (threshold:0.8); or an `et.Sampler`, an
                  `et.Candidate`, an `et.Recommendation`, or a file that one of the latter was saved to
    strategy      a schedule without a clock (uniform, cosine), or the file of a schedule or plan, for every block
    steps         network evaluations for a whole answer, shared by its blocks, along such a schedule; files and
                  adaptive samplers know their own
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
        strategy: str | Schedule | Plan = "uniform",
        sampler: str | Sampler | Candidate | Recommendation = "ancestral",
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
        need("lm_eval", "eval", TESTED)
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
        own = getattr(self.model.task, "tokenizer", None)
        self.tokenizer = tokenizer or own or load_tokenizer(str(pretrained), trust_remote_code)
        way = _chosen(sampler)
        self.steps = int(steps)
        self.block_length = way.block_length if block_length is None else int(block_length)
        self.sampler, self.planned = _along(way, strategy)
        self.max_gen_toks, self.mc_samples, self.batch_size = int(max_gen_toks), int(mc_samples), int(batch_size)
        self.temperature, self.seed = float(temperature), int(seed)
        self.evaluations = 0
        """Network evaluations of sequences so far."""
        self.generating = 0
        """Those of them that answers took."""
        self.generated = 0
        """Tokens of answers so far, up to the first that ends a text."""

    @property
    def tokens_per_forward(self) -> float:
        """Tokens of answers for each network evaluation; nothing after the end of a text counts."""
        return self.generated / self.generating if self.generating else float("nan")

    def get_model_info(self) -> dict[str, Any]:
        """What the harness writes beside its results."""
        planned = None if isinstance(self.planned, str) else self.planned
        return {
            "sampler": str(Candidate(self.sampler, planned, self.block_length)),
            "evaluations": self.evaluations,
            "tokens_per_forward": self.tokens_per_forward,
        }

    @property
    def tokenizer_name(self) -> str:
        """For the harness's cache."""
        return str(getattr(self.tokenizer, "name_or_path", "tokenizer"))

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """As the tokenizer says."""
        return str(
            self.tokenizer.apply_chat_template(
                chat_history, tokenize=False, add_generation_prompt=add_generation_prompt
            )
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
        """Answers, each cut at the first of its stop strings; prompts of equal length are answered together, in batches
        on which no answer depends."""
        together: dict[tuple[int, int, float], list[Question]] = defaultdict(list)
        for number, request in enumerate(requests):
            question = self._question(number, *request.args)
            together[question.shape].append(question)
        results = [""] * len(requests)
        with progress_bar("Generating", not disable_tqdm) as advance:
            done = 0
            for questions in together.values():
                for question, tokens in zip(questions, self._answers(questions), strict=True):
                    results[question.number] = self._text(tokens, question.stops)
                done += len(questions)
                advance(done, len(requests))
        log.info("%.2f tokens per forward with %s.", self.tokens_per_forward, self.get_model_info()["sampler"])
        return results

    def _question(self, number: int, context: str, options: dict[str, Any]) -> Question:
        """What a request asks; a prompt that is too long loses its beginning."""
        length = int(options.get("max_gen_toks", self.max_gen_toks))
        if length > self.model.length:
            raise EigentimeError(f"An answer of {length} tokens is longer than {self.model.name} takes.")
        prompt = self.tokenizer.encode(context, add_special_tokens=False)
        prompt = prompt[max(0, len(prompt) + length - self.model.length) :]
        greedy = options.get("do_sample") is False
        temperature = 0.0 if greedy else float(options.get("temperature", self.temperature))
        stops = options.get("until") or []
        return Question(
            number, tuple(prompt), length, temperature, (stops,) if isinstance(stops, str) else tuple(stops)
        )

    def _answers(self, questions: list[Question]) -> Int[Tensor, "b n"]:
        """Tokens of answers to questions of one shape."""
        size, length, temperature = questions[0].shape
        begun = size % (self.model.block or 1)  # tokens of a block that the prompt does not fill
        schedules = self._schedules(begun + length)
        model = _resized(self.model, size - begun + len(schedules) * self._block(begun + length))
        prompts = torch.tensor([question.prompt for question in questions], dtype=torch.long).view(len(questions), size)
        tokens, nfe = generate_blocks(
            model,
            schedules,
            prompts,
            sampler=self.sampler,
            seed=self.seed + questions[0].number,
            shaping=Shaping(temperature),
            normalise=True,
            batch_size=self.batch_size,
        )
        spent = round(nfe * len(questions))
        self.evaluations, self.generating = self.evaluations + spent, self.generating + spent
        return tokens[:, size : size + length]

    def _block(self, length: int) -> int:
        """Tokens of a block."""
        return self.block_length or self.model.block or length

    def _schedules(self, length: int) -> list[Schedule | Plan | None]:
        """One for every block; the last block of a network that was trained in blocks may be longer than the answer."""
        block = self._block(length)
        if self.model.block is None and length % block:
            raise EigentimeError(f"An answer of {length} tokens does not split into blocks of {block}.")
        blocks = -(-length // block)
        if not isinstance(self.planned, str):
            return [self.planned] * blocks
        if self.steps < blocks:
            raise EigentimeError(f"{self.steps} steps are too few for {blocks} blocks: each takes at least one.")
        steps = min(self.steps // blocks, block)
        return [api.schedule(self.planned, steps=steps, process=self.model.process)] * blocks

    def _text(self, tokens: Int[Tensor, " n"], stops: tuple[str, ...]) -> str:
        """The answer, and its tokens counted."""
        ends = getattr(self.tokenizer, "eos_token_id", None)
        ended = (tokens == ends).nonzero() if ends is not None else tokens.new_empty(0)
        self.generated += int(ended[0]) + 1 if len(ended) else len(tokens)
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        for stop in stops:
            text = text.split(stop)[0] if stop else text
        return str(text)

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


def _chosen(sampler: str | Sampler | Candidate | Recommendation) -> Candidate:
    """A way of sampling, however it was given."""
    if isinstance(sampler, Recommendation):
        return sampler.candidate
    if isinstance(sampler, str) and Path(sampler).suffix == ".json":
        return Candidate.load(sampler)
    return sampler if isinstance(sampler, Candidate) else Candidate(sampler)


def _along(way: Candidate, strategy: str | Schedule | Plan) -> tuple[str | Sampler, str | Schedule | Plan | None]:
    """The sampler, and what it walks along: the name of a schedule where the number of steps is still to be said."""
    if way.planned is not None or not make_sampler(way.sampler).scheduled:
        return way.sampler, way.planned
    if isinstance(strategy, str) and strategy not in UNMEASURED:
        return way.sampler, Candidate.load(strategy).planned
    return way.sampler, strategy


def _resized(model: Model, length: int) -> Model:
    """The same network for sequences of another length."""
    other = copy.copy(model)
    other.length = length
    return other


def load_tokenizer(name: str, trust_remote_code: bool = False) -> Any:
    """The tokenizer that comes with a checkpoint."""
    import transformers

    try:
        return transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=trust_remote_code)
    except Exception as error:
        detail = (str(error).splitlines() or [type(error).__name__])[0]
        raise EigentimeError(f"{name} comes without a tokenizer that loads ({detail}); pass tokenizer=….") from None
