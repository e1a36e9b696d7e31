"""Bad numbers are found where they enter: a network is looked at before anything is measured."""

import warnings

import numpy as np
import pytest
import torch

import eigentime as et

MASKED = et.Process(et.Absorbing(6), et.LogLinear())
UNIFORM = et.Process(et.Uniform(5), et.LogLinear())
DATA = torch.randint(0, 5, (64, 8), generator=torch.Generator().manual_seed(1))


def embedding(ids, width, scale=0.3):
    torch.manual_seed(0)
    layer = torch.nn.Embedding(ids, width)
    layer.weight.data *= scale
    return layer


def measured(network, process=MASKED, data=DATA, **options):
    model = et.wrap(network, process, length=8, **{"time": None, **options})
    return et.measure(model, data, budget=64)


def meta(x):
    return torch.zeros(*x.shape, 6, device="meta")


BAD = {
    "dropout": (lambda x: torch.nn.functional.dropout(embedding(6, 6, 1.0)(x), 0.3), {}, "answers the same question"),
    "logits as scores": (embedding(6, 6), {"predicts": "score"}, r"adds up to .* in place of 1\. Raw outputs"),
    "no scores": (
        lambda x: embedding(5, 5)(x) - 3,
        {"predicts": "score", "process": UNIFORM},
        "score of a token against itself",
    ),
    "sees the answer": (
        lambda x: 100.0 * torch.nn.functional.one_hot(torch.where(x == 5, DATA[0], x), 6),
        {},
        "certain of tokens that it was shown nothing of",
    ),
    "takes no time": (embedding(6, 6), {"time": "t"}, "asked with a time"),
    "another vocabulary": (embedding(5, 6), {}, "IndexError"),
    "integers": (lambda x: torch.zeros(*x.shape, 6, dtype=torch.long), {}, "torch.int64"),
    "no device": (meta, {}, "on no device"),
    "another shape": (lambda x: embedding(6, 6)(x)[0], {}, "expected a tensor of shape"),
    "not normalised": (embedding(6, 6), {"predicts": "posterior"}, "no log-probabilities"),
    "NaN": (lambda x: torch.full((*x.shape, 6), torch.nan), {}, "NaN or infinity"),
}


@pytest.mark.parametrize("what", BAD)
def test_networks_that_are_refused(what):
    network, options, sentence = BAD[what]
    with pytest.raises(et.EigentimeError, match=sentence):
        measured(network, **options)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (DATA.index_fill(1, torch.tensor([0]), 5), "hold the mask, token 5"),
        (DATA * 0, "nothing but token 0"),
        (DATA[:, :7], "shape"),
        (DATA[:0], "shape"),
        (DATA + 9, "which is not one of"),
    ],
)
def test_data_that_are_refused(data, sentence):
    model = et.wrap(embedding(6, 6), MASKED, length=8, time=None)
    grid = et.schedule("uniform", steps=2, model=model)
    for use in (
        lambda: et.measure(model, data, budget=16),
        lambda: et.nll(model, data, planned=grid),
        lambda: et.measure_blocks(model, data, block_length=4, budget=16),
        lambda: et.schedule("jys", steps=2, model=model, data=data),
        lambda: et.compare(model, ["uniform"], [2], data=data),
    ):
        with pytest.raises(et.EigentimeError, match=sentence):
            use()


def test_a_model_of_ones_own_that_is_not_normalised():
    class Mine(et.Model):
        name, process, length, time_dependent = "mine", MASKED, 8, False

        def __call__(self, x, t, where=None, cond=None):
            rows = torch.ones(*x.shape, 6)
            return rows if where is None else rows[where]

    with pytest.raises(et.EigentimeError, match="apply log_softmax"):
        et.measure(Mine(), DATA, budget=16)


def test_entropy_and_cross_entropy_that_disagree_are_said_with_their_size():
    """Sharp on values that the data do not prefer: exact entropies are known."""
    logits = torch.tensor([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    logs = logits[:5].log_softmax(-1)
    entropy, cross = -(logs.exp() * logs).sum().item(), -logs.mean().item()
    even = torch.arange(5).repeat(64, 8)[:, :40].reshape(-1, 8)
    with pytest.warns(UserWarning, match="not calibrated") as caught:
        measured(lambda x: logits.expand(*x.shape, 6), data=even)
    assert f"entropy, {entropy:.3g}" in str(caught[0].message)
    assert f"disagree by {cross - entropy:+.2g}" in str(caught[0].message)
    with pytest.warns(UserWarning, match="between levels"):
        measured(lambda x: 3 * embedding(5, 5, 1.0)(x), UNIFORM)


def test_good_networks_are_looked_at_once_and_left_alone():
    calls = []

    def network(x):
        calls.append(len(x))
        return torch.zeros(*x.shape, 6)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clock = measured(network)
    assert calls[0] == 2 and sum(calls) == clock.evaluations + 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("countdown", "countdown-uniform"):
            assert np.isfinite(et.measure(et.load(name), budget=64).evaluations)
