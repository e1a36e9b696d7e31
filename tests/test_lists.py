"""List operations: posteriors and what samplers reach, against enumeration and closed forms."""

import math
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import eigentime as et
from eigentime.experiments import lists as experiment
from eigentime.models.list_operations import CERTAIN, OPERATIONS, RANDOM
from eigentime.models.lists import ListOperations, values_of
from eigentime.samplers.teacher import teach
from eigentime.tasks import TASKS, lists
from eigentime.tasks.list_limits import best_accuracy, best_counts, best_trade

ITEMS = 7


def small(length, *operations):
    process = et.Process(et.Absorbing(values_of(ITEMS, length) + 1), et.LogLinear())
    return ListOperations(process, ITEMS, length, operations or tuple(OPERATIONS))


def answers_of(model, x):
    """All answers to a prompt, written down anew from the words of the operation."""
    name = [*OPERATIONS][int(x[0]) - model.first_operation]
    place, new = int(x[1]) - model.first_place, int(x[2])
    items = [int(token) for token in x[3 : model.given] if token != model.blank]
    kind, _, which = name.partition("-")
    spots = range(len(items) + (kind == "insert")) if which == "random" else [place]
    if kind == "shuffle":
        return [list(order) for order in permutations(items)]
    if kind in ("copy", "reverse", "sort"):
        return [{"copy": items, "reverse": items[::-1], "sort": sorted(items)}[kind]]
    if kind == "replace":
        return [[*items[:k], new, *items[k + 1 :]] for k in spots]
    if kind == "insert":
        return [[*items[:k], new, *items[k:]] for k in spots]
    return [items[:k] + items[k + 1 :] for k in spots]


def with_answer(x, model, answer):
    whole = x.clone()
    whole[model.given :] = torch.as_tensor(answer)
    return whole


@pytest.mark.parametrize("operation", OPERATIONS)
def test_posteriors_are_those_of_enumeration(operation):
    model = small(4, operation)
    mask, size = model.process.mask, model.process.kernel.size
    for x in model.draw(3, seed=1):
        every = answers_of(model, x)
        assert len(every) == OPERATIONS[operation].answers(4)
        for answer in (every[0], every[-1]):
            for shown in product([False, True], repeat=4):
                if all(shown):
                    continue
                noisy = with_answer(x, model, [value if s else mask for value, s in zip(answer, shown, strict=True)])
                agreeing = [one for one in every if all(one[i] == answer[i] for i in range(4) if shown[i])]
                expected = np.zeros((4, size))
                for one in agreeing:
                    expected[range(4), one] += 1 / len(agreeing)
                law = model(noisy[None], torch.tensor([0.5]).double())[0, model.given :].exp()
                np.testing.assert_allclose(law, expected, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(RANDOM), st.integers(0, 10**6), st.lists(st.booleans(), min_size=4, max_size=4))
def test_contradictions_count_by_the_fewest_tokens_that_disagree(operation, seed, shown):
    """Whatever is known, the posterior is that of the answers nearest to it: vanishing noise."""
    model = small(4, operation)
    x = model.draw(1, seed)[0]
    known = np.random.default_rng(seed).integers(0, ITEMS, 4)
    noisy = with_answer(x, model, np.where(shown, known, model.process.mask))
    if all(shown):
        return
    every = np.array(answers_of(model, x))
    wrong = ((every != known) & np.array(shown)).sum(1)
    nearest = every[wrong == wrong.min()]
    law = model(noisy[None], torch.tensor([0.5]).double())[0, model.given :].exp().numpy()
    for i in np.flatnonzero(~np.array(shown)):
        expected = np.bincount(nearest[:, i], minlength=law.shape[1]) / len(nearest)
        np.testing.assert_allclose(law[i], expected, atol=1e-12)


def test_data_are_what_the_law_says():
    model = small(3)
    x = model.draw(4000, seed=2)
    assert torch.equal(x, model.draw(4000, seed=2)) and not torch.equal(x, model.draw(4000, seed=3))
    for row in x[:200]:
        assert row[model.given :].tolist() in answers_of(model, row)
    logs = -model.log_likelihood(x)
    assert abs(logs.mean() - model.entropy) < 5 * logs.std() / len(x) ** 0.5
    counts = torch.bincount(x[:, 0] - model.first_operation)
    assert (counts - 400).abs().max() < 5 * 400**0.5
    for name, chosen in model.choices(x).items():
        number = OPERATIONS[name].choices(3)
        frequency = torch.bincount(chosen, minlength=number) / len(chosen)
        assert (frequency - 1 / number).abs().max() < 5 * (0.25 / len(chosen)) ** 0.5
    broken = x.clone()
    broken[:, -1] = model.blank
    assert torch.isinf(model.log_likelihood(broken)).all() and not model.allowed(broken).any()


def best_by_enumeration(model, x, evaluations):
    """The best chance over all rules: at every evaluation every set of places, every outcome with its product law."""
    every = answers_of(model, x)
    length = model.places

    def value(known, left):
        hidden = [i for i in range(length) if i not in known]
        if not hidden:
            return 1.0
        shown = [known.get(i, model.process.mask) for i in range(length)]
        law = model(with_answer(x, model, shown)[None], torch.tensor([0.5]).double())[0, model.given :].exp().numpy()
        best = 0.0
        for size in [len(hidden)] if left == 1 else range(1, len(hidden) + 1):
            for chosen in combinations(hidden, size):
                agreeing = [one for one in every if all(one[i] == token for i, token in known.items())]
                total = 0.0
                for outcome in {tuple(one[i] for i in chosen) for one in agreeing}:
                    chance = math.prod(law[i, token] for i, token in zip(chosen, outcome, strict=True))
                    total += chance * value({**known, **dict(zip(chosen, outcome, strict=True))}, left - 1)
                best = max(best, total)
        return best

    return value({}, evaluations)


@pytest.mark.parametrize("operation", ["copy", "replace-index", *RANDOM])
def test_the_closed_form_is_the_best_of_all_rules(operation):
    model = small(3, operation)
    x = model.draw(1, seed=4)[0]
    for evaluations in (1, 2, 3):
        found = best_by_enumeration(model, x, evaluations)
        assert best_accuracy(operation, 3, evaluations) == pytest.approx(found, abs=1e-9)


def best_trade_by_enumeration(model, x, price):
    """The same with a price for every evaluation: accuracy - price·evaluations."""
    every, length = answers_of(model, x), model.places

    def value(known):
        hidden = [i for i in range(length) if i not in known]
        if not hidden:
            return 1.0
        shown = [known.get(i, model.process.mask) for i in range(length)]
        law = model(with_answer(x, model, shown)[None], torch.tensor([0.5]).double())[0, model.given :].exp().numpy()
        agreeing = [one for one in every if all(one[i] == token for i, token in known.items())]
        found = []
        for size in range(1, len(hidden) + 1):
            for chosen in combinations(hidden, size):
                total, wrong = -price, 1.0
                for outcome in {tuple(one[i] for i in chosen) for one in agreeing}:
                    chance = math.prod(law[i, token] for i, token in zip(chosen, outcome, strict=True))
                    total += chance * value({**known, **dict(zip(chosen, outcome, strict=True))})
                    wrong -= chance
                found.append(total - price * wrong * (size < len(hidden)))
        return max(found)

    return value({})


@pytest.mark.parametrize("operation", RANDOM)
@pytest.mark.parametrize("price", [0.01, 0.1, 0.5])
def test_the_best_trade_is_that_of_all_rules(operation, price):
    model = small(3, operation)
    evaluations, accuracy = best_trade(operation, 3, price)
    found = best_trade_by_enumeration(model, model.draw(1, seed=4)[0], price)
    assert accuracy - price * evaluations == pytest.approx(found, abs=1e-9)


def test_closed_forms_of_one_evaluation():
    for n in (2, 5, 8):
        assert best_accuracy("shuffle", n, 1) == pytest.approx(math.factorial(n) / n**n, abs=1e-12)
        assert best_accuracy("replace-random", n, 1) == pytest.approx((1 - 1 / n) ** (n - 1), abs=1e-12)
    for operation in OPERATIONS:
        reached = [best_accuracy(operation, 8, k) for k in range(1, 9)]
        assert reached[-1] == pytest.approx(1.0, abs=1e-12)
        assert all(later >= before - 1e-12 for before, later in pairwise(reached))
        assert (operation in CERTAIN) == (reached[0] == 1.0)
    with pytest.raises(et.EigentimeError, match="Unknown operation 'swap'"):
        best_accuracy("swap", 8, 2)
    with pytest.raises(et.EigentimeError, match="at least 1"):
        best_accuracy("copy", 8, 0)


def taught(model, x, planned, sampler="ancestral"):
    """ln q of all answers to a prompt, given the prompt."""
    every = torch.stack([with_answer(x, model, one) for one in answers_of(model, x)])
    fixed = torch.arange(model.length) < model.given
    condition = et.samplers.Condition(fixed=fixed)
    return teach(model, every, planned, sampler, condition=condition).logs.sum(1)


@pytest.mark.parametrize("evaluations", [1, 2, 3, 5])
def test_a_plan_with_the_best_counts_reaches_the_closed_form(evaluations):
    """Σ q over all 120 answers is the chance of a right one, to the last digit."""
    model = small(5, "shuffle")
    x = model.draw(1, seed=5)[0]
    order = torch.roll(torch.arange(model.length), -model.given).tolist()
    planned = et.Plan(best_counts(5, evaluations), et.orders.make_order(order), model.length)
    logs = taught(model, x, planned)
    assert logs.exp().sum().item() == pytest.approx(best_accuracy("shuffle", 5, evaluations), abs=1e-9)
    kl = -(logs.mean().item() + math.log(120))
    assert math.exp(-kl) == pytest.approx(logs.exp().sum().item(), abs=1e-9)  # all permutations are equally likely


@pytest.mark.parametrize("operation", RANDOM)
@pytest.mark.parametrize("sampler", [et.EntropyBounded(1.0), et.Threshold(0.4), "confidence", "entropy"])
def test_accuracy_is_at_least_e_to_minus_the_nats_and_at_most_the_best(operation, sampler):
    model = small(4, operation)
    x = model.draw(1, seed=6)[0]
    grid = et.schedule("uniform", steps=2, model=model) if isinstance(sampler, str) else None
    logs = taught(model, x, grid, sampler)
    accuracy, kl = logs.exp().sum().item(), -(logs.mean().item() + math.log(len(logs)))
    assert math.exp(-kl) - 1e-9 <= accuracy <= best_accuracy(operation, 4, 2 if grid else 4) + 1e-9


def test_samples_are_right_as_often_as_the_closed_form_says():
    model = lists.exact(operations=["replace-random"])
    model.task = TASKS["lists"]
    prompts, fixed = model.draw(4096, 3), torch.arange(model.length) < model.given
    x = et.sample(model, et.schedule("uniform", steps=1, model=model), 4096, given=prompts, fixed=fixed)
    accuracy = TASKS["lists"].metrics(x)["accuracy"]
    assert abs(accuracy.mean - best_accuracy("replace-random", 8, 1)) < 5 * accuracy.stderr


def test_lists_refuse_what_they_cannot_do():
    model = et.load("lists-exact")
    with pytest.raises(et.EigentimeError, match="first 12 tokens are given"):
        et.measure(model, model.draw(64, 0), fixed=torch.arange(20) < 4, budget=16)
    with pytest.raises(et.EigentimeError, match="absorbing kernel only"):
        et.load("lists-exact", "uniform")
    with pytest.raises(et.EigentimeError, match="Unknown operation 'swap'"):
        lists.exact(operations=["swap"])
    with pytest.raises(et.EigentimeError, match="2 items more"):
        ListOperations(model.process, 8, 8)
    with pytest.raises(et.EigentimeError, match="begins with the token of an operation"):
        model.allowed(torch.zeros(1, 20, dtype=torch.long))
    with pytest.raises(et.EigentimeError, match="not 'Zoe'"):
        lists.Words().encode("copy Zoe")


def test_words_and_tokens():
    model, words = et.load("lists-exact"), lists.Words()
    for row in model.draw(32, 0):
        assert words.encode(words.decode(row)) == row.tolist()


def test_the_network_answers_and_knows_what_it_does_not():
    """Nats above the exact model, one token at a time, and the operation that asks for nothing but attention."""
    network, fixed = et.load("lists"), torch.arange(20) < 12
    one_by_one = et.Plan((1,) * 8, et.orders.make_order("random"), 20)
    for operation, least in (("copy", 0.95), ("shuffle", 0.4)):
        law = lists.exact(operations=[operation])
        prompts = law.draw(64, 9)
        x = et.sample(network, one_by_one, 64, given=prompts, fixed=fixed, batch_size=64)
        assert TASKS["lists"].metrics(x)["accuracy"].mean > least
        cost = et.nll(network, prompts, "ancestral", one_by_one, fixed=fixed, references=1, batch_size=64)
        assert cost.nats.mean - law.answer_entropy < 1.5


def test_the_experiment(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "RANDOM", ("remove-random",))
    monkeypatch.setattr(experiment, "CERTAIN", ("copy",))
    monkeypatch.setattr(experiment, "ADAPTIVES", (et.Threshold(0.3),))
    monkeypatch.setattr(experiment, "LOOKING", ())
    bold = [et.Candidate(et.Threshold(0.01)), et.Candidate(et.EntropyBounded(100.0))]
    monkeypatch.setattr(
        experiment, "recommend", lambda *args, **options: et.recommend(*args, candidates=bold, **options)
    )
    content = experiment.Lists(samples=128, steps=(1, 2), budget=32).run(tmp_path)
    rows = content["exact"]["remove-random"]["rows"]
    assert {row["strategy"] for row in rows} == {"uniform", "ods", "plan", "adaptive", "recommended"}
    for row in rows:
        if row["steps"]:
            accuracy, best = row["metrics"]["accuracy"], content["best"]["remove-random"][str(row["steps"])]
            assert accuracy["mean"] < best + 5 * accuracy["stderr"]
    once = next(row for row in rows if row["steps"] == 1)
    promised = math.exp(-once["metrics"]["kl"]["mean"])
    assert promised < content["best"]["remove-random"]["1"] and content["bound"]["exact"]["holds"] == 1.0
    assert content["network"]["copy"]["rows"][0]["metrics"]["accuracy"]["mean"] > 0.9
    assert (tmp_path / "lists.png").stat().st_size > 10_000 and not list(tmp_path.glob("*.partial.json"))
    for wrong, sentence in (({"model": "countdown"}, "not a network of lists"), ({"steps": (9,)}, "at most as many")):
        with pytest.raises(et.EigentimeError, match=sentence):
            experiment.Lists(**wrong).run(tmp_path)


def test_a_promise_is_broken_only_by_more_than_chance():
    def row(accuracy, kl, samples=100):
        metrics = {"accuracy": {"mean": accuracy, "stderr": 0.0}, "kl": {"mean": kl, "stderr": 0.0}}
        return {"metrics": metrics, "samples": samples}

    kept = [row(0.0, -math.log(0.01)), row(0.45, -math.log(0.5)), row(0.9, -math.log(0.5)), row(1.0, -1e-12)]
    broken = [row(0.0, -math.log(0.1)), row(0.3, -math.log(0.5))]
    assert experiment.bound({"a": {"rows": kept}})["holds"] == 1.0
    assert experiment.bound({"a": {"rows": kept}, "b": {"rows": broken}})["holds"] == pytest.approx(4 / 6)
