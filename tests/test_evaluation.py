"""The harness class with every way of sampling, and accuracy against tokens per forward."""

import json
import math
import random
import sys
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

import eigentime as et
import published
from eigentime import packages
from eigentime.cli.app import app
from eigentime.tasks import lists
from eigentime.tasks.list_limits import best_accuracy, best_counts

pytest.importorskip("lm_eval")

import lm_eval.tasks
from lm_eval.api.instance import Instance

from eigentime.evaluation import Accuracy, NamedWay, area, areas, chosen_metric
from eigentime.harness import MaskedHarness
from eigentime.harness_lists import list_task, right

WORDS = lists.Words()


def questions(operation, count, **options):
    model = lists.exact(operations=[operation])
    prompts = [WORDS.decode(row[: model.given]) for row in model.draw(count, 1)]
    options = {"max_gen_toks": 8, "temperature": 1.0, **options}
    return prompts, [Instance("generate_until", {}, (prompt, options), 0) for prompt in prompts]


def accuracy(prompts, answers):
    return sum(right({"prompt": p}, [a])["acc"] for p, a in zip(prompts, answers, strict=True)) / len(prompts)


def test_answers_do_not_depend_on_batches_and_follow_every_way_of_sampling(tmp_path):
    model = et.load("lists-exact")
    prompts, asked = questions("shuffle", 96)
    plan = et.Plan(best_counts(8, 4), et.orders.make_order("random"), 8)
    plan.save(tmp_path / "plan.json")
    et.Candidate(et.EntropyBounded(1.0)).save(tmp_path / "way.json")
    ways = {
        "one at a time": ({"steps": 8, "sampler": "counted"}, 1.0, 1.0),
        "at once": ({"steps": 1}, 8.0, best_accuracy("shuffle", 8, 1)),
        "plan": ({"strategy": plan}, 2.0, best_accuracy("shuffle", 8, 4)),
        "plan's file": ({"strategy": str(tmp_path / "plan.json")}, 2.0, best_accuracy("shuffle", 8, 4)),
        "candidate": ({"sampler": et.Candidate("ancestral", plan)}, 2.0, best_accuracy("shuffle", 8, 4)),
        "adaptive": ({"sampler": "entropy-bounded:0"}, 1.0, 1.0),
        "adaptive's file": ({"sampler": str(tmp_path / "way.json")}, None, None),
        "blocks": ({"steps": 8, "block_length": 4, "sampler": "counted"}, 1.0, 1.0),
    }
    for name, (settings, rate, expected) in ways.items():
        judges = [MaskedHarness(model, batch_size=size, **settings) for size in (7, 96)]
        answers = [judge.generate_until(asked, disable_tqdm=True) for judge in judges]
        assert answers[0] == answers[1], name
        assert judges[0].get_model_info()["tokens_per_forward"] == judges[1].tokens_per_forward
        if rate is not None:
            assert judges[0].tokens_per_forward == pytest.approx(rate), name
            noise = math.sqrt(expected * (1 - expected) / len(prompts))
            assert abs(accuracy(prompts, answers[0]) - expected) <= 5 * noise + 1e-12, name


def test_a_recommendation_answers(tmp_path):
    model = et.load("lists-exact")
    own = [et.Candidate(et.EntropyBounded(0.0)), et.Candidate(et.EntropyBounded(9.0))]
    found = et.recommend(model, nfe=8, candidates=own, sequences=16)
    found.save(tmp_path / "best.json")
    prompts, asked = questions("replace-random", 24)
    answers = [
        MaskedHarness(model, sampler=way).generate_until(asked, disable_tqdm=True)
        for way in (found, str(tmp_path / "best.json"))
    ]
    assert answers[0] == answers[1] and accuracy(prompts, answers[0]) == 1.0


def test_prompts_of_different_lengths_and_what_ends_a_text(tmp_path):
    class Ending(lists.Words):
        eos_token_id = 0

    model = et.load("lists")
    prompts, asked = questions("copy", 4)
    shorter = [Instance("generate_until", {}, (prompts[0], {"max_gen_toks": 4}), 0)]
    judge = MaskedHarness(model, Ending(), steps=1)
    answers = judge.generate_until([*asked, *shorter], disable_tqdm=True)
    ended = [WORDS.encode(answer) for answer in answers]
    counted = [tokens.index(0) + 1 if 0 in tokens else len(tokens) for tokens in ended]
    assert judge.generated == sum(counted) and judge.generating == 5 and len(ended[4]) == 4
    with pytest.raises(et.EigentimeError, match="There is no file"):
        MaskedHarness(model, strategy="missing.json")
    with pytest.raises(et.EigentimeError, match="20 tokens in all"):
        MaskedHarness(et.load("lists-exact"), steps=1).generate_until(shorter, disable_tqdm=True)


def test_the_area_is_that_of_the_leaderboard():
    points = [(1.0, 80.0), (2.0, 78.0), (4.0, 76.0), (8.0, 70.0)]
    w = [min(math.exp(-3 * (1 - y / 82)), 1.0) for _, y in points]
    expected = 80 + (80 * w[0] + 78 * w[1]) / 2 + 2 * (78 * w[1] + 76 * w[2]) / 2  # 70 is too far below 80
    assert area(points, 82.0) == pytest.approx(expected)
    assert area(points[::-1], 82.0) == pytest.approx(expected)
    assert area([(2.0, 50.0)], 50.0) == 100.0 and area([(2.0, 0.0)], 0.0) == 0.0
    assert math.isnan(area([(float("nan"), 50.0)], 50.0))
    rising = [(1.0, 60.0), (2.0, 72.0), (3.0, 66.0)]  # what counts is how far below the slowest point
    assert area(rising, 72.0) > area(rising[:2], 72.0)


@pytest.mark.skipif(published.CHECKOUTS is None, reason="$EIGENTIME_ENGINES names no folder with checkouts")
def test_the_area_is_the_leaderboards(monkeypatch):
    """d3LLM's own function, from a checkout; it refuses curves that end more than five points below their begin."""
    monkeypatch.syspath_prepend(str(published.CHECKOUTS / "d3LLM" / "AUP_leaderboard"))
    theirs, draw = import_module("aup_utils").get_aup, random.Random(0)
    for _ in range(200):
        rates = sorted(draw.uniform(1, 9) for _ in range(6))
        accuracies = [draw.uniform(60, 80) for _ in rates]
        accuracies[-1] = accuracies[0] - draw.uniform(-5, 5)
        points, best = list(zip(rates, accuracies, strict=True)), max(accuracies) + draw.uniform(0, 5)
        assert area(points, best) == pytest.approx(theirs(rates, accuracies, best))


def test_accuracy_against_tokens_per_forward_goes_on_where_it_stopped(tmp_path, monkeypatch):
    settings = {
        "model": "lists-exact",
        "tasks": ["lists_shuffle", "lists_copy"],
        "samplers": ["uniform", "counted@cosine", "threshold:0.3", "threshold:0.9"],
        "steps": [1, 8],
        "limit": 24,
    }
    made = Accuracy._row
    count = 0

    def stops(self, *arguments):
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return made(self, *arguments)

    monkeypatch.setattr(Accuracy, "_row", stops)
    with pytest.raises(KeyboardInterrupt):
        Accuracy(**settings).run(tmp_path)
    content = Accuracy(**settings).run(tmp_path)
    assert count == 13, "three of twelve cells were kept"
    saved = json.loads((tmp_path / "evaluation.json").read_text())
    assert saved["provenance"]["settings"]["limit"] == 24 and (tmp_path / "evaluation.png").stat().st_size > 10_000
    copied = content["tasks"]["lists_copy"]
    assert all(row["metrics"]["accuracy"]["mean"] == 1.0 for row in copied["rows"])
    assert copied["aup"]["uniform"] == pytest.approx(800.0)
    shuffled = {(row["sampler"], row["steps"]): row["metrics"] for row in content["tasks"]["lists_shuffle"]["rows"]}
    assert shuffled["uniform", 1]["tokens_per_forward"]["mean"] == 8.0
    assert shuffled["counted@cosine", 8]["accuracy"]["mean"] > shuffled["uniform", 1]["accuracy"]["mean"]
    assert set(areas(content["tasks"]["lists_shuffle"]["rows"])) == {"uniform", "counted@cosine", "threshold"}
    assert not list(tmp_path.glob("*.partial.json"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--samplers", "magic"], "Unknown sampler 'magic'"),
        (["--samplers", "counted@ods"], "measured ones come from a file"),
        (["--samplers", "missing.json"], "There is no file"),
        (["--samplers", "threshold:many"], "sets nothing"),
        (["--limit", "0"], "limit must be at least 1"),
        (["--steps", "0"], "at least 1"),
    ],
)
def test_bad_requests_get_a_sentence_and_leave_nothing(tmp_path, words, sentence):
    arguments = ["evaluate", "lists-exact", "--tasks", "lists_copy", "--out", str(tmp_path / "out"), *words]
    with pytest.raises(et.EigentimeError, match=sentence):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert not (tmp_path / "out").exists()


def test_metrics_ways_and_tasks_by_name():
    result = {"alias": "x", "acc,none": 0.5, "acc_stderr,none": 0.1, "exact_match,strict": 0.2}
    assert chosen_metric(result, None) == "acc,none" and chosen_metric(result, "exact_match") == "exact_match,strict"
    with pytest.raises(et.EigentimeError, match="has no metric 'bleu'"):
        chosen_metric(result, "bleu")
    assert NamedWay("threshold:0.8").curve == "threshold" and NamedWay("counted@cosine").strategy == "cosine"
    with pytest.raises(et.EigentimeError, match="Unknown list task"):
        list_task("lists_swap")
    assert right({"prompt": "copy"}, ["Zoe"])["acc"] == 0.0


def test_without_the_harness_there_is_one_sentence(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("lm_eval")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    for name in ("evaluation", "harness", "harness_lists"):
        monkeypatch.delitem(sys.modules, f"eigentime.{name}", raising=False)
    with pytest.raises(et.EigentimeError, match=r"pip install 'eigentime\[eval\]'"):
        CliRunner().invoke(app, ["evaluate", "lists-exact", "--tasks", "lists_copy"], catch_exceptions=False)


TASK = """
task: waiting_line
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["@"], do_sample: true, temperature: 1.0, max_gen_toks: 8}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
filter_list:
  - {{name: strict-match, filter: [{{function: take_first}}]}}
  - {{name: first-word, filter: [{{function: regex, regex_pattern: "^(\\\\w+)"}}, {{function: take_first}}]}}
"""


def test_a_task_that_the_harness_reads(tmp_path, monkeypatch):
    """From a YAML file with a dataset, filters and metrics, as gsm8k has them: the harness asks and judges."""
    model = lists.exact(operations=["copy", "shuffle"])
    rows = model.draw(24, 3)
    texts = [(WORDS.decode(row[: model.given]), WORDS.decode(row[model.given :])) for row in rows]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in texts))
    (tmp_path / "waiting_line.yaml").write_text(TASK.format(file=file))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    few = partial(lm_eval.tasks.TaskManager, include_defaults=False)  # reading thousands of files takes a minute
    monkeypatch.setattr(lm_eval.tasks, "TaskManager", few)
    out, arguments = tmp_path / "out", ["evaluate", "lists-exact", "--tasks", "waiting_line", "--steps", "1,8"]
    arguments += ["--include-path", str(tmp_path)]
    for extra in (["--metric", "exact_match,strict-match"], ["--metric", "speed"]):
        done = CliRunner().invoke(app, [*arguments, "--samplers", "counted", *extra, "--out", str(out)])
        assert (done.exit_code == 0) == (extra[1] != "speed"), done.output
    assert "it has exact_match,strict-match, exact_match,first-word" in str(done.exception)
    (found,) = json.loads((out / "evaluation.json").read_text())["tasks"].values()
    copied = np.mean([text.startswith("copy") for text, _ in texts])  # no order that is drawn is the one in the file
    for row, rate in zip(found["rows"], (8, 1), strict=True):
        assert row["metrics"]["tokens_per_forward"]["mean"] == rate
        assert row["metrics"]["accuracy"]["mean"] == pytest.approx(copied, abs=0.01)
    with pytest.raises(et.EigentimeError, match="knows no task 'queue'"):
        Accuracy(model="lists-exact", tasks=["queue"]).check()


def test_an_untested_harness_gets_a_warning(monkeypatch):
    monkeypatch.setattr(packages, "version", lambda name: "0.9")
    with pytest.warns(UserWarning, match=r"lm_eval 0.9 has not been tried"):
        MaskedHarness(et.load("lists-exact"))
