"""Costs gathered batch by batch: stopped and gone on with, within a tolerance or a budget, shaped, in blocks."""

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import eigentime as et
from eigentime import gathering, likelihood
from eigentime.cli.app import app
from eigentime.gathering import Batch, Limits, gather
from eigentime.intervals import bootstrap_t
from eigentime.likelihood import taught_cost
from eigentime.orders import make_order
from eigentime.samplers.teacher import log_likelihood, nelbo, one_at_a_time, teach
from test_divergences import every
from worlds import random_table


class Killed(Exception):
    pass


def interrupt(monkeypatch, after):
    """Let so many batches through, then stop as a kill would."""
    left, measure = [after], likelihood._taught

    def some(*arguments):
        if not left[0]:
            raise Killed
        left[0] -= 1
        return measure(*arguments)

    monkeypatch.setattr(likelihood, "_taught", some)


def same(one, other):
    for name in ("nats", "one_at_a_time", "nelbo", "excess"):
        np.testing.assert_array_equal(getattr(one, name).values, getattr(other, name).values)
    np.testing.assert_allclose(one.by_step, other.by_step, rtol=1e-12)
    assert (one.evaluations.mean, one.evaluations.most) == (other.evaluations.mean, other.evaluations.most)
    assert (one.taught, one.forbidden, one.spent, one.exact) == (
        other.taught,
        other.forbidden,
        other.spent,
        other.exact,
    )


@pytest.mark.parametrize("sampler", [et.EntropyBounded(1.0), "first-hitting", et.OrderBounded("low-discrepancy", 2.0)])
def test_a_killed_call_goes_on_and_finds_the_same(sampler, tmp_path, monkeypatch):
    model, path = random_table(3, 6, concentration=0.3), tmp_path / "kept.json"
    options = {"sequences": 56, "references": 2, "seed": 3}
    x = model.draw(60, 1)
    whole = et.nll(model, x, sampler, **options)
    with monkeypatch.context() as patch:
        interrupt(patch, after=2)
        with pytest.raises(Killed):
            et.nll(model, x, sampler, keep=path, **options)
    assert len(json.loads(path.read_text())["batches"]) == 2
    with monkeypatch.context() as patch:
        interrupt(patch, after=2)
        again = et.nll(model, x, sampler, keep=path, **options)
    same(whole, again)
    with monkeypatch.context() as patch:
        interrupt(patch, after=0)  # nothing is left to measure
        same(whole, et.nll(model, x, sampler, keep=path, **options))
    more = et.nll(model, x, sampler, keep=path, **options | {"sequences": 60})
    same(more, et.nll(model, x, sampler, **options | {"sequences": 60}))


def test_sequences_cost_the_same_in_any_company():
    """What chance decides of a sequence depends on which one it is, not on those it is measured with."""
    model = random_table(3, 6, concentration=0.3)
    x, grid = model.draw(40, 1), et.schedule("uniform", steps=3, model=model)
    clock = et.measure(model, orders=["low-discrepancy"], budget=64)
    ways = [("ancestral", grid), ("counted", grid), (et.Margin(noise=2.0), grid), ("first-hitting", None)]
    for sampler, planned in [*ways, ("ancestral", et.plan(clock, 3, order="low-discrepancy"))]:
        whole, part = (teach(model, rows, planned, sampler, first=first) for rows, first in ((x, 0), (x[24:], 24)))
        torch.testing.assert_close(whole.logs[24:], part.logs, rtol=0, atol=1e-12)
        singles = [one_at_a_time(model, walk, 3, first=first) for walk, first in ((whole, 0), (part, 24))]
        assert torch.equal(singles[0][1][24:], singles[1][1])
        np.testing.assert_allclose(taught_cost(model, x[24:], sampler, planned, first=24)[0], -part.logs.sum(1))
    both = [nelbo(model, rows, torch.ones_like(rows).bool(), 4, first=first) for rows, first in ((x, 0), (x[24:], 24))]
    torch.testing.assert_close(both[0][24:], both[1])


def test_a_file_of_anything_else_is_refused(tmp_path):
    model, path = random_table(3, 4, concentration=0.3), tmp_path / "kept.json"
    grid = et.schedule("uniform", steps=2, model=model)
    x = model.draw(20, 1)
    et.nll(model, x, "entropy", grid, keep=path)
    before = path.read_bytes()
    for model_, x_, sampler, planned, options, other in [
        (random_table(3, 4, seed=9), x, "entropy", grid, {}, "another model"),
        (model, model.draw(20, 2), "entropy", grid, {}, "other sequences"),
        (model, x, "margin", grid, {}, "another sampler"),
        (model, x, et.LowestEntropy(ties="first"), grid, {}, "another sampler"),
        (model, x, "entropy", et.schedule("cosine", steps=2, model=model), {}, "another schedule"),
        (model, x, "entropy", grid, {"shaping": et.Shaping(0.5)}, "another shaping"),
        (model, x, "entropy", grid, {"block_length": 2}, "another block length"),
        (model, x, "entropy", grid, {"references": 3}, "another number of references"),
        (model, x, "entropy", grid, {"seed": 1}, "another seed"),
        (model, x, "entropy", grid, {"fixed": [True, False, False, False]}, "other sequences"),
    ]:
        with pytest.raises(et.EigentimeError, match=other):
            et.nll(model_, x_, sampler, planned, keep=path, **options)
    with pytest.raises(et.EigentimeError, match="another direction"):
        et.reverse_kl(model, "entropy", grid, samples=20, keep=path)
    assert path.read_bytes() == before, "a refusal changes nothing"
    path.write_text("{}")
    with pytest.raises(et.EigentimeError, match="no batches"):
        et.nll(model, x, "entropy", grid, keep=path)
    orders = [np.array([0, 1, 2, 3]), np.array([3, 2, 1, 0])]
    own = tmp_path / "orders.json"
    et.nll(model, x, et.OrderBounded(orders[0], 1.0), keep=own)
    with pytest.raises(et.EigentimeError, match="another sampler"):
        et.nll(model, x, et.OrderBounded(orders[1], 1.0), keep=own)


def test_own_samples_go_on_too(tmp_path, monkeypatch):
    model, path = random_table(3, 4, concentration=0.3), tmp_path / "kept.json"
    options = {"samples": 40, "references": 2, "seed": 2}
    whole = et.reverse_kl(model, et.EntropyBounded(1.5), **options)
    with monkeypatch.context() as patch:
        kept = likelihood.Way.singly
        calls = []

        def some(*arguments):
            calls.append(1)
            if len(calls) > 2:
                raise Killed
            return kept(*arguments)

        patch.setattr(likelihood.Way, "singly", some)
        with pytest.raises(Killed):
            et.reverse_kl(model, et.EntropyBounded(1.5), keep=path, **options)
    assert len(json.loads(path.read_text())["batches"]) == 2
    again = et.reverse_kl(model, et.EntropyBounded(1.5), keep=path, **options)
    np.testing.assert_array_equal(whole.values, again.values)


def pretend(values, cost=3):
    """Sequences whose costs are known."""
    return lambda first, last: Batch({"nats": values[first:last].tolist()}, {}, cost * (last - first))


def test_tolerance_is_asked_at_doublings_and_intervals_keep_their_promise():
    """Of 300 runs that stop when they know enough, about 95 in a hundred intervals hold the truth, although costs are
    skewed, so that small means come with small standard errors. Looking after every batch covers less."""
    rng, tolerance = np.random.default_rng(0), 0.12
    covered, often, numbers = [], [], []
    for _ in range(300):
        values = rng.exponential(size=1024)
        found = gather(pretend(values), lambda first, last: "", Limits(1024, tolerance), "nats").values("nats")
        numbers.append(len(found))
        low, high = bootstrap_t(found)
        covered.append(low <= 1 <= high)
        stop = next(n for n in range(16, 1025, 4) if values[:n].std(ddof=1) / n**0.5 <= tolerance)
        low, high = bootstrap_t(values[:stop])
        often.append(low <= 1 <= high)
    assert set(numbers) <= {64, 128, 256, 512} and len(set(numbers)) > 1
    assert 0.92 <= np.mean(covered) <= 0.98 and np.mean(often) < np.mean(covered) - 0.02


def test_limits():
    values = np.random.default_rng(1).normal(size=1000)

    def number(**limits):
        found = gather(pretend(values), lambda first, last: "", Limits(1000, **limits), "nats")
        return len(found.values("nats")), found.spent

    assert number() == (1000, 3000)
    assert number(budget=100) == (33, 99), "the last batch is as large as the budget allows"
    assert number(budget=1)[0] == gathering.BATCH, "one batch is always measured"
    assert number(tolerance=1e-9)[0] == 1000 and number(tolerance=9.0)[0] == 64
    values[3] = np.inf
    assert number(tolerance=1e-9)[0] == 64, "what is infinite stays so"
    for wrong in ({"tolerance": 0.0}, {"tolerance": float("nan")}, {"budget": 0}):
        with pytest.raises(et.EigentimeError):
            number(**wrong)
    with pytest.raises(et.EigentimeError, match="At least one"):
        Limits(0)


def test_where_shaping_forbids_data_there_are_other_numbers():
    model = random_table(3, 4, concentration=0.3)
    x, sampler = model.draw(64, 1), et.EntropyBounded(1.5)
    plain = et.nll(model, x, sampler)
    assert plain.unshaped is None and plain.greedy is None
    for shaping in (et.Shaping(temperature=0.0), et.Shaping(top_p=0.5), et.Shaping(temperature=0.7)):
        cost = et.nll(model, x, sampler, shaping=shaping, references=4)
        np.testing.assert_allclose(cost.unshaped.values, plain.nats.values, atol=1e-9)
        assert (cost.greedy is not None) == (shaping.temperature == 0) and "at temperature 1" in str(cost)
        assert (cost.forbidden > 0) == np.isinf(cost.nats.mean)
    blocks = et.nll(model, x, sampler, shaping=et.Shaping(temperature=0.0), block_length=2)
    np.testing.assert_allclose(blocks.unshaped.values, et.nll(model, x, sampler, block_length=2).nats.values)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_what_greedy_steps_share_with_one_token_at_a_time(seed):
    """By hand: the greedy sample of two steps, and for each of its tokens the likeliest value given all before it."""
    model = random_table(3, 4, seed=seed, concentration=0.3)
    plan = et.Plan((2, 2), make_order("raster"), 4)
    law = model.law.double().view(3, 3, 3, 3)

    def likeliest(known, j):
        """argmax of P(x_j | x_0 … x_{k-1})."""
        rest = law[tuple(known)].movedim(j - len(known), 0)
        return int(rest.reshape(3, -1).sum(1).argmax())

    sample = []
    for step in range(2):
        sample += [likeliest(sample[: 2 * step], 2 * step + k) for k in range(2)]
    truth = np.mean([likeliest(sample[:j], j) == sample[j] for j in range(4)])
    cost = et.nll(model, model.draw(32, 1), "ancestral", plan, shaping=et.Shaping(temperature=0.0), references=4)
    assert cost.greedy == pytest.approx(truth)


def test_blocks_in_both_directions():
    """Two blocks of two tokens at once are the plan that does the same; quantiles are those of whole sequences."""
    model = random_table(3, 4, concentration=0.3)
    p, grid = model.law.double(), et.schedule("uniform", steps=1, model=model)
    q = log_likelihood(model, every(model), et.Plan((2, 2), make_order("raster"), 4)).exp()
    truth = (torch.xlogy(q, q) - torch.xlogy(q, p)).sum().item()
    found = et.reverse_kl(model, "entropy", grid, block_length=2, samples=1600, references=2, seed=5)
    assert abs(found.mean - truth) < 4 * found.stderr and truth > 0.01
    cost = et.nll(model, model.draw(200, 1), et.Threshold(0.6), block_length=2, sequences=200)
    spent = taught_cost(model, model.draw(200, 1), et.Threshold(0.6), None, block_length=2)[1]
    assert cost.taught.mean == pytest.approx(spent.mean()) and cost.taught.most == np.quantile(spent, 0.95)
    assert 2 <= cost.evaluations.mean <= 4 and cost.evaluations.most <= 4
    for wrong in (0, 3, 8):
        with pytest.raises(et.EigentimeError, match=r"do not split|block_length must be"):
            et.nll(model, model.draw(8, 1), "entropy", grid, block_length=wrong)


def test_command(tmp_path, monkeypatch):
    data, path = tmp_path / "data.npy", tmp_path / "kept.json"
    model = et.load("countdown-exact")
    np.save(data, model.draw(20, 5).numpy())
    grid = tmp_path / "grid.json"
    et.schedule("uniform", steps=2, model=model).save(grid)
    arguments = ["nll", "countdown-exact", "--sampler", "margin", "--schedule", str(grid), "--data", str(data)]
    arguments += ["--keep", str(path), "--references", "1"]

    def run(*more):
        return CliRunner().invoke(app, [*arguments, *more])

    with monkeypatch.context() as patch:

        def stop(*_):
            raise KeyboardInterrupt

        patch.setattr(likelihood, "_taught", stop)
        stopped = run()
        assert stopped.exit_code == 130 and "the same command goes on" in stopped.stderr
        assert "Traceback" not in stopped.stderr
    result = run("--json")
    content = json.loads(result.stdout)
    expected = et.nll(model, np.load(data), "margin", et.schedule("uniform", steps=2, model=model), references=1)
    assert result.exit_code == 0 and content["sequences"] == 20
    assert content["nats"]["mean"] == pytest.approx(expected.nats.mean) and content["evaluations"]["mean"] == 2
    assert "20 sequences: " in run().stdout
    with pytest.raises(et.EigentimeError, match="--schedule"):
        CliRunner().invoke(app, ["nll", "countdown-exact", "--sampler", "margin"], catch_exceptions=False)
