"""The page on serving: its examples run as they stand, inside engines that do no more than call what they publish."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import published
from eigentime.engines import dllm
from eigentime.schedules import Plan

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "engines-serving.md").read_text()
SECTIONS = {
    title: block
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, flags=re.S | re.M)
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S)
}
MASK, BLOCK = 32, 32


@pytest.fixture(scope="module")
def planned():
    """What the first example leaves behind."""
    names = {}
    exec(compile(SECTIONS["A plan for a block"], "engines-serving.md", "exec"), names)
    return names


def network(x):
    return torch.zeros(*x.shape, MASK + 1)


def run(title, planned, **names):
    names = {**planned, "network": network, "mask_id": MASK, "eos_id": -1, **names}
    exec(compile(SECTIONS[title], "engines-serving.md", "exec"), names)
    return names


def test_every_example_takes_ten_lines_at_most(planned):
    def lines(block):
        return sum(bool(line.strip()) for line in block.splitlines())

    first = lines(SECTIONS["A plan for a block"])
    assert set(SECTIONS) == {"A plan for a block", "SGLang", "dllm", "dInfer", "Diffulex", "Fast-dLLM"}
    assert all(first + lines(block) <= 10 for title, block in SECTIONS.items() if title != "A plan for a block")
    for page in ("engines.md", "blocks.md"):  # test_readme.py and test_blocks.py run these
        examples = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S)
        assert len(examples) >= 3 and max(map(lines, examples)) <= 10
    assert isinstance(planned["plan"], Plan) and planned["plan"].length == BLOCK


def test_sglang(planned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("SGLang", planned)
    assert f"counts: {list(planned['plan'].counts)}" in (tmp_path / "plan8.yaml").read_text()


def test_dllm(planned):
    class MDLMSampler:
        def __init__(self, model, tokenizer, scheduler):
            self.scheduler = scheduler

        def sample(self, prompts, steps, max_new_tokens, block_size, temperature, remasking):
            found.extend(published.dllm_counts(self.scheduler, block_size, steps * block_size // max_new_tokens))

    found = []
    dllm.scheduler_class.cache_clear()
    with published.modules(
        dllm={},
        dllm__core={},
        dllm__core__samplers={"MDLMSampler": MDLMSampler},
        dllm__core__schedulers={"BaseAlphaScheduler": published.BaseAlphaScheduler},
    ):
        run("dllm", planned, tokenizer=None, prompts=[[1]])
    dllm.scheduler_class.cache_clear()
    assert found == list(planned["plan"].counts)


def test_dinfer(planned):
    class BlockWiseDiffusionLLM:
        def __init__(self, model, decoder, iterator_factory, maximum_unroll):
            self.model, self.decoder = model, decoder

        def generate(self, prompt, gen_length, block_length):
            x = torch.full((len(prompt), gen_length), MASK)
            published.dinfer_generate(self.model, self.decoder, x, block_length)
            return x

    content = {"BlockIteratorFactory": object, "BlockWiseDiffusionLLM": BlockWiseDiffusionLLM}
    with published.modules(dinfer=content):
        tokens = run("dInfer", planned, prompt=torch.zeros(2, 4))["tokens"]
    assert tokens.shape == (2, 64) and not (tokens == MASK).any()


def test_diffulex(planned):
    class Diffulex:
        def __init__(self, model_path, model_name, **parallel):
            self.sampler = published.AutoSampler.SAMPLER_MAPPING[model_name][0]()

        def generate(self, prompts, sampling_params):
            request = published.diffulex_request(0, [MASK] * sampling_params.max_tokens, BLOCK, MASK)
            for _ in range(2 * planned["plan"].evaluations):
                self.sampler([request], lambda x: network(x).index_fill(-1, torch.tensor([MASK]), -torch.inf))
            return request.token_ids

    published.AutoSampler.SAMPLER_MAPPING = {"llada": (published.DiffulexSampler, False)}
    with published.modules(
        diffulex={"Diffulex": Diffulex, "SamplingParams": SimpleNamespace},
        diffulex__sampler={},
        diffulex__sampler__auto_sampler={"AutoSampler": published.AutoSampler},
    ):
        texts = run("Diffulex", planned, model_path="", prompts=[""])["texts"]
    assert len(texts) == 64 and MASK not in texts


def test_fast_dllm(planned):
    def generate_with_dual_cache(model, prompt, steps, gen_length, block_length, temperature, mask_id):
        x = torch.cat([prompt, torch.full((len(prompt), gen_length), mask_id)], 1)
        steps = steps * block_length // gen_length
        module, start = sys.modules["generate"], prompt.shape[1]
        return x, published.fast_dllm_generate(model, x, start, block_length, steps, mask_id, "block", module)

    content = {"generate_with_dual_cache": generate_with_dual_cache, **vars(published.FAST_DLLM)}
    with published.modules(generate=content):
        names = run("Fast-dLLM", planned, prompt=torch.zeros(2, 4, dtype=torch.long))
    assert names["nfe"] == 2 * planned["plan"].evaluations and not (names["x"] == MASK).any()
