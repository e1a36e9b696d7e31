"""Language: clean-up, n-grams, judges, and the experiments in miniature."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from typer.testing import CliRunner

import eigentime as et
from eigentime.cli.app import app
from eigentime.data import openwebtext
from eigentime.data import text as characters_of
from eigentime.experiments import choosing, published_text
from eigentime.experiments import text as experiment
from eigentime.samplers import EntropyBounded
from eigentime.tasks import EXACT, MODELS, text, trigram
from eigentime.tasks.language_judges import language_judge, mauve
from eigentime.tasks.metrics import sequence_entropy
from eigentime.tasks.ngrams import CharacterModel
from test_checkpoints import put

WORDS = "the cat sat on the mat and the dog ran to the man with a red hat "


def coded(sentence):
    return np.array([characters_of.SYMBOLS.index(symbol) for symbol in sentence], dtype=np.uint8)


def test_what_a_reader_of_the_article_sees():
    page = (
        "<page><title>Secret</title><text xml:space='preserve'>'''Anarchism''' in [[1984]] &amp; "
        "[[Greek language|Greek]] {{cite}}[[Image:a.jpg|thumb|A flag]] &lt;ref&gt;hidden&lt;/ref&gt;born "
        "[http://a.b/c here] [[fr:Anarchisme]] [[Category:Politics|x]]</text></page>"
        "<page><text xml:space='preserve'>#REDIRECT [[Other]]</text></page>"
    )
    seen = " ".join(characters_of.cleaned(page).split())
    assert seen == "anarchism in one nine eight four greek a flag born here politics"
    assert set(characters_of.cleaned(page)) <= set(characters_of.SYMBOLS)
    assert characters_of.spelled(coded("a cat")) == "a cat"
    parts = [characters_of.part_of(np.arange(1000), part) for part in ("training", "validation", "test")]
    assert [len(part) for part in parts] == [900, 50, 50] and np.concatenate(parts).tolist() == list(range(1000))


def witten_bell(sequence, context, symbol, size):
    """The textbook's recursion, by counting in the sequence itself."""
    if context is None:
        return 1 / size
    shorter = witten_bell(sequence, context[1:] if context else None, symbol, size)
    k = len(context)
    order = 3
    # all grams of one order: shorter counts are those of the suffixes of the longest
    longest = [tuple(sequence[i : i + order]) for i in range(len(sequence) - order + 1)]
    grams = Counter(gram[order - k - 1 :] for gram in longest)
    after = {gram[-1]: n for gram, n in grams.items() if gram[:-1] == tuple(context)}
    seen = sum(after.values())
    return shorter if not seen else (after.get(symbol, 0) + len(after) * shorter) / (seen + len(after))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=5, max_size=60), st.lists(st.integers(0, 3), min_size=4, max_size=8))
def test_the_judge_is_witten_bell_and_its_rows_sum_to_one(sequence, sample):
    model = CharacterModel(np.array(sequence), 4, order=3)
    found = np.exp(model.log_probabilities(np.array([sample])))[0]
    for i in range(len(sample)):
        context = sample[max(0, i - 2) : i]
        assert found[i] == pytest.approx(witten_bell(sequence, context, sample[i], 4))
    ends = np.array([[*sample[:-1], symbol] for symbol in range(4)])
    assert np.exp(model.log_probabilities(ends))[:, -1].sum() == pytest.approx(1.0)


@pytest.fixture
def small_text(monkeypatch):
    """The task on a little text of its own."""
    whole = coded(WORDS * 200)
    caches = (text.sequences, text.judge, text.known_words, text.real_entropy)
    monkeypatch.setattr(text, "characters", lambda: whole)
    for cached in caches:
        cached.cache_clear()
    yield whole
    for cached in caches:
        cached.cache_clear()


def test_text_is_told_from_noise_and_from_repetition(small_text):
    real = text.sequences("test")[:8].long()
    shuffled = torch.stack([row[torch.randperm(256, generator=torch.Generator().manual_seed(1))] for row in real])
    repeated = torch.from_numpy(coded(("the cat " * 40)[:256])).long().expand(8, -1)
    good, noise, dull = (text.judged(x) for x in (real, shuffled, repeated))
    assert good["bits"].mean < 0.7 < 2 < noise["bits"].mean
    assert good["real_words"].mean == 1.0 > 0.3 > noise["real_words"].mean
    assert dull["real_words"].mean == 1.0 and dull["entropy"].mean < good["entropy"].mean - 0.3
    assert dull["entropy_gap"].mean > 0.3 > 0.05 > good["entropy_gap"].mean
    assert dull["distinct"].mean < good["distinct"].mean < noise["distinct"].mean
    assert sequence_entropy(torch.tensor([[0, 1], [1, 1]])).tolist() == pytest.approx([math.log(2), 0.0])
    assert text.TASK.draw(4, 0).shape == (4, 256) and text.TASK.training_data(0)[0].shape[1] == 256


def test_the_trigram_chain_is_its_counts():
    pairs, transition = trigram.law()
    assert pairs.sum() == pytest.approx(1.0) and np.allclose(transition.sum(-1), 1.0)
    order = np.argsort(transition[characters_of.SYMBOLS.index("t"), characters_of.SYMBOLS.index("h")])
    assert characters_of.SYMBOLS[order[-1]] == "e"
    x = coded("q" + "the cat sat on the mat")[1:]
    counts = trigram.count(x)
    assert counts.sum() == len(x) - 2 and counts[tuple(coded("the"))] == 2
    model = et.load("trigram-exact")
    tokens = model.draw(64, 0)
    judged = trigram.judged(tokens)
    assert abs(judged["surprise"].mean) < 5 * judged["surprise"].stderr
    noise = torch.randint(0, 27, (64, 256), generator=torch.Generator().manual_seed(0))
    assert trigram.judged(noise)["surprise"].mean > 500 > 0.5 > judged["trigrams"].mean


@pytest.fixture(scope="module")
def tiny_judge(tmp_path_factory):
    """A GPT-2 with random weights and a word-level tokeniser, as a folder of the hub's layout."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path_factory.mktemp("judge")
    words = ["<|endoftext|>", *dict.fromkeys(WORDS.split()), *(f"w{k}" for k in range(16))]
    tokenizer = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, unk_token="the"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|endoftext|>", bos_token="<|endoftext|>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=len(words), n_positions=64, n_embd=16, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def test_two_conventions_of_generative_perplexity(tiny_judge):
    judge = language_judge(str(tiny_judge))
    ids = torch.tensor([[3, 4, 5, 1, 2, 6], [3, 0, 4, 0, 0, 5]])
    logs = judge.network(ids).logits.double().log_softmax(-1)[:, :-1]
    surprise = -logs.gather(-1, ids[:, 1:, None]).squeeze(-1)
    by_sequence = surprise.mean(1).exp()
    sedd = judge.perplexity(ids, "sedd")
    assert sedd.mean == pytest.approx(by_sequence.mean().item(), rel=1e-4)
    counted = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 1]]).bool()  # of the ends of text only the first
    mdlm = judge.perplexity(ids, "mdlm")
    assert mdlm.mean == pytest.approx(surprise[counted].mean().exp().item(), rel=1e-4)
    sentence = "the cat sat"
    tokens = torch.tensor([judge.tokenizer(sentence).input_ids])
    bits = judge.surprise(tokens).sum().item() / math.log(2) / len(" cat sat")  # the first token is given
    assert judge.bits([sentence, "", "the"]).tolist() == pytest.approx([bits, math.nan, math.nan], nan_ok=True)
    assert math.isnan(judge.perplexity(torch.tensor([[3]]), "mdlm").mean), "nothing to count is not a perfect score"
    assert judge.features([sentence, "a dog"]).shape == (2, 16)
    with pytest.raises(et.EigentimeError, match="needs a judge with the same tokens"):
        judge.perplexity(torch.tensor([[5000]]), "sedd")
    with pytest.raises(et.EigentimeError, match="Unknown convention"):
        judge.perplexity(ids, "mine")
    with pytest.raises(et.EigentimeError, match="cannot be loaded"):
        language_judge("./no-such-folder")


@pytest.mark.filterwarnings("ignore")
def test_mauve_is_near_one_for_the_same_and_near_zero_for_other_features():
    pytest.importorskip("mauve")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300, 16))
    assert mauve(a, b) > 0.8 > 0.1 > mauve(a, b + 2)


def test_documents_are_packed_with_an_end_behind_each(tiny_judge, tmp_path, monkeypatch):
    tokenizer = language_judge(str(tiny_judge)).tokenizer
    found = openwebtext.packed(iter(["the cat", "sat on the mat", "a dog"] * 3), tokenizer, count=2, length=5)
    flat = [*tokenizer("the cat").input_ids, 0, *tokenizer("sat on the mat").input_ids, 0]
    assert found.shape == (2, 5) and found.flatten()[:8].tolist() == flat
    with pytest.raises(et.EigentimeError, match="fewer than one sequence"):
        openwebtext.packed(["the cat"], tokenizer, 1, 100)
    pytest.importorskip("datasets")
    monkeypatch.setenv("EIGENTIME_DATA", str(tmp_path))
    folder = tmp_path / "openwebtext"
    folder.mkdir()
    with pytest.raises(et.EigentimeError, match="holds no"):
        next(openwebtext.openwebtext())
    (folder / "part.jsonl").write_text("".join(json.dumps({"text": f"{WORDS} {k}"}) + "\n" for k in range(4)))
    assert list(openwebtext.openwebtext())[3].endswith(" 3")
    (folder / "part.jsonl").write_text('{"words": "the"}\n')
    with pytest.raises(et.EigentimeError, match="no column `text`"):
        next(openwebtext.openwebtext())


def test_text_experiment_on_the_oracle(tmp_path, monkeypatch):
    short = trigram.exact("absorbing", length=24)
    task = replace(trigram.TASK, exact=lambda kernel: short)
    monkeypatch.setattr(trigram, "chain", lambda: short)
    monkeypatch.setitem(MODELS, "trigram-exact", task)
    monkeypatch.setitem(EXACT, "trigram-exact", task)
    content = experiment.Text(model="trigram-exact", samples=4, steps=[2, 4], budget=32, jys_samples=2).run(tmp_path)
    rows = content["rows"]
    assert {(row["strategy"], row["steps"]) for row in rows} == {
        (strategy, k) for strategy in [*experiment.STRATEGIES, "plan"] for k in (2, 4)
    }
    bounds = {(row["strategy"], row["steps"]): row["nll_bound"]["mean"] for row in rows}
    assert all(bounds[row["strategy"], 2] > bounds[row["strategy"], 4] > 0.8 * short.entropy for row in rows)
    assert content["rank_correlation"]["surprise"] > 0.5
    for row in rows:
        bound = row["nll_bound"]
        assert abs(bound["excess"] - row["path_error"]["mean"]) < 5 * bound["excess_stderr"] + 1
        assert bound["mean"] > short.entropy - 4 * bound["stderr"]
    assert (tmp_path / "trigram-exact-dynamics.png").exists()
    assert (tmp_path / "trigram-exact.png").stat().st_size > 10_000
    samples = (tmp_path / "trigram-exact-samples.txt").read_text()
    assert samples.count("evaluations") == len(rows) and not list(tmp_path.glob("*.partial.json"))
    arguments = ["--models", "trigram-exact", "--judge", "none", "--samples", "4", "--steps", "2", "--budget", "16"]
    result = CliRunner().invoke(app, ["reproduce", "text", *arguments, "--out", str(tmp_path / "cli")])
    assert result.exit_code == 0 and "surprise" in result.stdout
    for options, message in (
        ({"model": "countdown"}, "not a bundled model of text"),
        ({"steps": [3]}, "powers of two"),
    ):
        with pytest.raises(et.EigentimeError, match=message):
            experiment.Text(**options).run(tmp_path)


def test_text_experiment_on_a_network_without_a_mask_read_by_a_language_model(tmp_path, tiny_judge, small_text):
    settings = {"samples": 4, "steps": [2], "judge": str(tiny_judge), "budget": 16, "jys_samples": 2}
    content = experiment.Text(model="text-uniform", **settings).run(tmp_path)
    assert {row["strategy"] for row in content["rows"]} == set(experiment.STRATEGIES)
    for row in content["rows"]:
        assert "nll_bound" not in row and row["metrics"][f"bits_{tiny_judge}"]["mean"] > 0


def test_published_protocol_on_a_small_checkpoint(tmp_path, tiny_judge, monkeypatch):
    checkpoint = str(put(tmp_path, "sedd_absorb"))
    monkeypatch.setenv("EIGENTIME_DATA", str(tmp_path))
    (tmp_path / "openwebtext").mkdir()
    (tmp_path / "openwebtext" / "a.txt").write_text((WORDS + "\n") * 100)
    options = {"samples": 4, "steps": [2, 4], "judge": str(tiny_judge), "tokenizer": str(tiny_judge), "budget": 32}
    content = published_text.PublishedText(checkpoint=checkpoint, jys_samples=2, **options).run(tmp_path / "out")
    for row in content["rows"]:
        assert {"perplexity_sedd", "perplexity_mdlm", "entropy"} <= row["metrics"].keys()
        assert row["metrics"]["perplexity_sedd"]["mean"] > 1
    assert (tmp_path / "out" / "published.png").exists()
    arguments = [
        "--checkpoint",
        checkpoint,
        "--judge",
        str(tiny_judge),
        "--tokenizer",
        str(tiny_judge),
        "--samples",
        "4",
    ]
    arguments += ["--steps", "2", "--budget", "16", "--own-samples", "--out", str(tmp_path / "cli")]
    result = CliRunner().invoke(app, ["reproduce", "text", *arguments])
    assert result.exit_code == 0 and "perplexity_mdlm" in result.stdout
    wrongs = (["--full", "--checkpoint", checkpoint], ["--own-samples"], ["--length", "8"], ["--models", "countdown"])
    for wrong in wrongs:
        with pytest.raises(et.EigentimeError):
            CliRunner().invoke(app, ["reproduce", "text", *wrong], catch_exceptions=False)
    for wrong, message in (({"steps": [3]}, "powers of two"), ({"sampler": "threshold"}, "takes no schedule")):
        with pytest.raises(et.EigentimeError, match=message):
            published_text.PublishedText(checkpoint=checkpoint, **{**options, **wrong}).run(tmp_path / "out")


def test_rows_of_another_judge_are_not_taken_over(tmp_path):
    model = et.load("countdown-exact")
    options = {"samples": 4, "keep": tmp_path / "rows.json", "data": model.draw(64, 0)}
    first = et.compare(
        model,
        ["uniform", "plan", "jys"],
        [2, 512],
        made_with={"judge": "a"},
        **options | {"clock": et.measure(model, orders=["raster"], budget=32), "jys_samples": 2},
    )
    assert {(row["strategy"], row["steps"]) for row in first} == {
        ("uniform", 2),
        ("uniform", 512),
        ("plan", 2),
        ("jys", 2),
    }
    with pytest.raises(et.EigentimeError, match="another judge"):
        et.compare(
            model,
            ["uniform"],
            [2],
            made_with={"judge": "b"},
            jys_samples=2,
            clock=et.measure(model, orders=["raster"], budget=32),
            **options,
        )


def test_choosing_experiment(tmp_path, monkeypatch):
    few = choosing.Domain(adaptive=(EntropyBounded(20.0), EntropyBounded(40.0), et.FirstHitting()))
    monkeypatch.setattr(choosing, "DOMAINS", {"countdown": few})
    settings = {"model": "countdown-exact", "samples": 4, "sequences": 8, "steps": [2, 4], "budget": 32}
    content = choosing.Choosing(**settings).run(tmp_path)
    rows, ranks = content["rows"], content["agreement"]
    covered = [row["metrics"] for row in rows if row["metrics"]["forward"]["mean"] == row["metrics"]["forward"]["mean"]]
    assert ranks["rows"] == len(covered) < len(rows), "remasking and a look at drawn values have no certificate"
    expected = spearmanr(*([row[name]["mean"] for row in covered] for name in ("forward", "violation"))).statistic
    assert ranks["forward"] == pytest.approx(expected) and ranks["forward"] > 0.5
    labels = {(row["sampler"], row["strategy"]) for row in rows}
    assert {("ancestral", "uniform"), ("entropy", "ods"), ("ancestral", "plan")} <= labels
    assert {("entropy-bounded (bound 40)", "adaptive"), ("first-hitting", "adaptive")} <= labels
    assert all(row["nfe"] == row["steps"] for row in rows if row["schedule"])
    bounded = [row["nfe"] for row in rows if row["sampler"].startswith("entropy-bounded")]
    assert bounded[0] > bounded[1] >= 1
    assert (tmp_path / "choosing.png").stat().st_size > 10_000 and not list(tmp_path.glob("*.partial.json"))
    for name, message in (("music", "generates freely"), ("countdown-uniform", "no mask")):
        with pytest.raises(et.EigentimeError, match=message):
            choosing.Choosing(model=name).run(tmp_path)
