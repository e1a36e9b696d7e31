"""The SGLang plugin inside SGLang's own loops: our own sampler's law, the plan's counts and places, K + 1 forwards."""

import re
import sys
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

import eigentime as et
import pretend
from eigentime.cli.app import app
from eigentime.engines.sglang import Settings
from eigentime.orders import make_order
from laws import law_of_counts, law_of_steps, p_value
from sglang_loops import PLUGIN, VERSION, Runner, batch, files, real_sglang
from worlds import random_table

needs_sglang = pytest.mark.skipif(
    files() is None,
    reason=f"sglang {VERSION} is not at hand; `pip download` it into the cache folder, as tests/sglang_loops.py says",
)
MASK, BLOCK, ROWS = 3, 4, 1500
PLAN = et.Plan((1, 1, 2), make_order([2, 0, 3, 1]), BLOCK)
STEPS = [1, 2, 0, 2]
"""At which evaluation PLAN reveals each place."""


@pytest.fixture
def sglang():
    with real_sglang():
        import eigentime_sglang

        eigentime_sglang.register()
        yield


@pytest.fixture(scope="module")
def world():
    return random_table(MASK, BLOCK)


def joint(model):
    """The data's law, one axis for each place."""
    return model.law.numpy().reshape((MASK,) * BLOCK)


def answers(model):
    """Log-posteriors in single precision, as a network's logits; places that are known get nonsense, which nobody may
    read."""

    def logits(rows):
        found = model(rows, torch.full((len(rows),), 0.5, dtype=torch.float64)).float()
        return torch.where((rows == MASK)[..., None], found, 77.0)

    return logits


def algorithm(settings, fdfo=False, block=BLOCK):
    """Made by SGLang's own configuration and registry, from what a YAML file would hold."""
    from sglang.srt.dllm.algorithm import get_algorithm
    from sglang.srt.dllm.config import DllmConfig

    content = settings if isinstance(settings, dict) else settings.to_dict()
    content = yaml.safe_load(yaml.safe_dump(content))
    return get_algorithm(DllmConfig("Eigentime", content, block, MASK, 8, first_done_first_out_mode=fdfo))


def masked(rows):
    return torch.full((rows, BLOCK), MASK)


def requests(count):
    return [f"request-{i}" for i in range(count)]


@needs_sglang
@pytest.mark.parametrize("kind", ["plan", "random", "schedule"])
def test_the_loop_draws_from_the_law_of_our_own_sampler(sglang, world, kind):
    grid = et.schedule("cosine", steps=3, model=world)
    followed, law = {
        "plan": (PLAN, law_of_steps(joint(world), STEPS)),
        "random": (et.Plan((1, 3), make_order("random"), BLOCK), law_of_counts(joint(world), (1, 3))),
        "schedule": (grid, law_of_counts(joint(world), grid.counts(BLOCK))),
    }[kind]
    forward_batch, runner = batch(masked(ROWS), requests(ROWS)), Runner(answers(world))
    algorithm(Settings.of(followed)).run(runner, forward_batch)
    found = forward_batch.input_ids.view(-1, BLOCK)
    own = et.sample(world, followed, ROWS, seed=1, **({"sampler": "counted"} if kind == "schedule" else {}))
    assert p_value(found, law) > 1e-3
    assert p_value(own, law) > 1e-3
    assert p_value(found, joint(world)) < 1e-6  # one token at a time would be another law
    assert runner.forwards == followed.evaluations + 1


@needs_sglang
def test_counts_and_places_are_the_plans_and_the_tensor_stays_the_same(sglang, world):
    forward_batch, runner = batch(masked(16), requests(16)), Runner(answers(world))
    tensor = forward_batch.input_ids
    _, tokens, accepted, states, _ = algorithm(Settings.of(PLAN)).run(runner, forward_batch)
    seen = [(rows != MASK).long() for rows in runner.seen]
    for k, rows in enumerate(seen):
        assert rows.tolist() == [[int(at < k) for at in STEPS]] * 16
    assert forward_batch.input_ids is tensor
    assert torch.equal(runner.seen[-1], tensor.view(-1, BLOCK))  # the last forward stored the final tokens
    assert torch.equal(torch.stack(tokens), tensor.view(-1, BLOCK)) and accepted is None and states is None


@needs_sglang
def test_prompts_are_kept_and_their_masks_too(sglang, world):
    rows = torch.tensor([[0, 1, MASK, MASK], [MASK, 2, MASK, MASK], [MASK] * 4])
    given = torch.tensor([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]).bool()  # the second prompt holds a literal mask
    forward_batch = batch(rows, requests(3), prompt_mask=given)
    runner = Runner(lambda rows: torch.zeros(*rows.shape, 4))
    _, tokens, *_ = algorithm(Settings.of(PLAN)).run(runner, forward_batch)
    assert [len(each) for each in tokens] == [2, 2, 4]
    found = forward_batch.input_ids.view(-1, BLOCK)
    assert torch.equal(found[given], rows[given])
    assert (found[~given] != MASK).all()  # though the logits say that it is as likely as any token


@needs_sglang
def test_a_prompt_conditions_the_rest(sglang, world):
    prompt = torch.tensor([1, MASK, MASK, 0])
    forward_batch = batch(prompt.expand(ROWS, BLOCK), requests(ROWS))
    algorithm(Settings.of(PLAN)).run(Runner(answers(world)), forward_batch)
    found = forward_batch.input_ids.view(-1, BLOCK)
    steps = PLAN.step_of(1, fixed=prompt != MASK)[0]
    steps = torch.unique(steps, return_inverse=True)[1] - 1  # evaluations without a token are not spent
    law = law_of_steps(joint(world), steps.tolist())
    only = np.zeros_like(law)
    only[1, :, :, 0] = law[1, :, :, 0]
    assert p_value(found, only) > 1e-3


@needs_sglang
def test_a_full_prompt_costs_one_forward(sglang, world):
    for fdfo in (False, True):
        forward_batch, runner = batch([[0, 1, 2, 0]], ["a"]), Runner(answers(world))
        _, tokens, accepted, *_ = algorithm(Settings.of(PLAN), fdfo).run(runner, forward_batch)
        assert runner.forwards == 1
        assert (tokens, accepted) == (([[0, 1, 2, 0]], [BLOCK]) if fdfo else ([], None))


def serve(algorithm, runner, arrivals, blocks):
    """First done, first out: what SGLang's scheduler does between rounds, for requests that arrive at some round."""
    blank = [MASK] * BLOCK
    live, outputs, rounds, spent = {}, {name: [] for name in arrivals}, 0, dict.fromkeys(arrivals, 0)
    while live or rounds <= max(arrivals.values()):
        live |= {name: (blank, None) for name, start in arrivals.items() if start == rounds}
        names = sorted(live)
        if names:
            starts = [len(outputs[name]) for name in names]
            forward_batch = batch([live[name][0] for name in names], names, torch.tensor(starts))
            _, tokens, accepted, states, _ = algorithm.run(runner, forward_batch, [live[name][1] for name in names])
            for name, row, taken, state in zip(names, tokens, accepted, states, strict=True):
                spent[name] += 1
                live[name] = (row, state)
                if taken:
                    outputs[name] += row
                    live[name] = (blank, None)
                    if len(outputs[name]) == blocks * BLOCK:
                        del live[name]
        rounds += 1
    return outputs, spent


@needs_sglang
def test_first_done_first_out_gives_each_request_what_it_would_get_alone(sglang, world):
    arrivals = {"a": 0, "b": 1, "c": 3, "d": 3}
    served, spent = serve(algorithm(Settings.of(PLAN), fdfo=True), Runner(answers(world)), arrivals, blocks=3)
    assert set(spent.values()) == {3 * (PLAN.evaluations + 1)}
    for name, tokens in served.items():
        assert MASK not in tokens
        alone = []
        for start in range(0, 3 * BLOCK, BLOCK):
            forward_batch = batch(masked(1), [name], start)
            algorithm(Settings.of(PLAN)).run(Runner(answers(world)), forward_batch)
            alone += forward_batch.input_ids.tolist()
        assert tokens == alone
    assert len({tuple(tokens) for tokens in served.values()}) > 1


@needs_sglang
def test_a_state_that_belongs_to_another_block_is_begun_anew(sglang, world):
    rule, runner = algorithm(Settings.of(PLAN), fdfo=True), Runner(answers(world))
    _, _, _, (state,), _ = rule.run(runner, batch(masked(1), ["a"]), [None])
    row = [[0, MASK, 1, MASK]]
    _, (tokens,), accepted, (state,), _ = rule.run(runner, batch(row, ["a"]), [state])
    assert tokens[0] == 0 and tokens[2] == 1 and accepted == [0]
    while not accepted[0]:
        _, (tokens,), accepted, (state,), _ = rule.run(runner, batch([tokens], ["a"]), [state])
    assert MASK not in tokens and state is None


@needs_sglang
def test_seeds_ids_and_temperatures(sglang):
    logits = torch.tensor([0.0, 0.3, 0.1, 9.0])  # the mask is likeliest by far

    def tokens(names, **settings):
        forward_batch = batch(masked(len(names)), names)
        shaping = et.Shaping(settings.pop("temperature", 1.0))
        algorithm(Settings.of(PLAN, shaping, **settings)).run(
            Runner(lambda rows: logits.expand(*rows.shape, 4)), forward_batch
        )
        return forward_batch.input_ids.view(-1, BLOCK)

    many = requests(200)
    assert torch.equal(tokens(many), tokens(many[::-1]).flip(0))
    assert not torch.equal(tokens(many), tokens(many, seed=1))
    assert tokens(many, temperature=0.0).unique().tolist() == [1]
    sharp = torch.softmax(logits[:3] / 0.5, 0)[1].item()
    share = (tokens(many, temperature=0.5) == 1).double().mean().item()
    assert abs(share - sharp) < 4 * (sharp * (1 - sharp) / 800) ** 0.5


@needs_sglang
def test_requests_may_be_given_their_own_temperature(sglang):
    settings = Settings(Settings.of(PLAN).follows, shaping=None)
    sampling = SimpleNamespace(
        temperatures=torch.tensor([[1.0], [1.0]]), top_ps=torch.ones(2), top_ks=torch.tensor([1, 1 << 30])
    )
    names = ["greedy", "free"]
    found = []
    for start in range(0, 160, BLOCK):
        forward_batch = batch(masked(2), names, start, sampling=sampling)
        logits = torch.tensor([0.0, 0.1, 0.05, 0.0])
        algorithm(settings).run(Runner(lambda rows, logits=logits: logits.expand(*rows.shape, 4)), forward_batch)
        found.append(forward_batch.input_ids.view(2, BLOCK))
    greedy, free = torch.stack(found).unbind(1)
    assert greedy.unique().tolist() == [1] and free.unique().tolist() == [0, 1, 2]


@needs_sglang
def test_another_device_gets_the_same_tokens_and_few_bytes_come_back(sglang):
    rows, size = 8, 500
    plan = et.Plan((2, 6, 8), make_order("low-discrepancy"), 16)
    table = torch.randn(16, size, generator=torch.Generator().manual_seed(0))

    def tokens(device):
        forward_batch = batch(torch.full((rows, 16), MASK), requests(rows))
        forward_batch.input_ids = forward_batch.input_ids.to(device)
        forward_batch.positions = forward_batch.positions.to(device)
        logits = table.to(device)
        pretend.traffic.reset()
        algorithm(Settings.of(plan), block=16).run(Runner(lambda x: logits.repeat(len(x), 1, 1)), forward_batch)
        return forward_batch.input_ids.cpu()

    assert torch.equal(tokens("pretend:0"), tokens("cpu"))
    tokens("pretend:0")
    assert pretend.traffic.to_host <= 32 * rows * 16, pretend.traffic.lines  # a row of logits has 2,000 bytes


@needs_sglang
def test_what_a_plan_cannot_obey_is_refused(sglang):
    from eigentime_sglang.algorithm import Eigentime

    plain = SimpleNamespace(json_schema=None, regex=None, ebnf=None, structural_tag=None, logit_bias=None)
    assert Eigentime.validate_request(SimpleNamespace(sampling_params=plain, return_logprob=False)) is None
    asked = SimpleNamespace(**{**vars(plain), "regex": "a+"})
    sentence = Eigentime.validate_request(SimpleNamespace(sampling_params=asked, return_logprob=True))
    assert "does not support regex, return_logprob" in sentence


@needs_sglang
def test_a_plan_for_other_blocks_is_refused(sglang):
    with pytest.raises(et.EigentimeError, match="blocks of 4 tokens, the engine's have 8"):
        algorithm(Settings.of(PLAN), block=8)


@needs_sglang
def test_sglang_finds_the_plugin_by_its_entry_point(tmp_path, monkeypatch):
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    (group, points), *_ = project["entry-points"].items()
    installed = tmp_path / "eigentime_sglang-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with real_sglang():
        from sglang.srt.dllm.algorithm import algo_name_to_cls
        from sglang.srt.plugins import load_plugins

        assert "Eigentime" not in algo_name_to_cls
        load_plugins()
        assert "Eigentime" in algo_name_to_cls


@needs_sglang
def test_untested_versions_get_a_warning(sglang, monkeypatch):
    import eigentime_sglang

    from eigentime.engines import tested

    monkeypatch.setattr(tested.metadata, "version", lambda package: "0.9.9")
    with pytest.warns(UserWarning, match=r"sglang 0\.9\.9 is installed; eigentime was tested with 0\.5\.23"):
        eigentime_sglang.register()


def bomb():
    """Ten levels of ten references each, as YAML aliases make them."""
    value = [1] * 10
    for _ in range(6):
        value = [value] * 10
    return value


GOOD = Settings.of(PLAN).to_dict()
BAD = {
    "not those of eigentime-sglang 1": [{}, [], {**GOOD, "version": 2}, {"threshold": 0.95}],
    "Unknown settings 'threshold'": [{**GOOD, "threshold": 0.9}],
    "either a plan's": [{**GOOD, "alphas": [0.0, 1.0]}, {key: v for key, v in GOOD.items() if key != "counts"}],
    "length must be a whole number": [{**GOOD, "length": 10**9}, {**GOOD, "length": "4"}],
    "an entry of counts must be": [
        {**GOOD, "counts": [0, 4]},
        {**GOOD, "counts": [True, 3]},
        {**GOOD, "counts": [1.5]},
    ],
    "counts must be a list": [{**GOOD, "counts": []}, {**GOOD, "counts": [1] * 5000}, {**GOOD, "counts": "1, 2"}],
    "add up to 6": [{**GOOD, "counts": [3, 3]}],
    "order must be a mapping": [{**GOOD, "order": "random"}, {**GOOD, "order": {"name": "lattice", "period": 10**9}}],
    "The order of the settings is damaged": [{**GOOD, "order": {}}, {**GOOD, "order": {"name": ["x"]}}],
    "Unknown order": [{**GOOD, "order": {"name": "best"}}],
    "The order has 3 positions": [{**GOOD, "order": {"name": "given", "permutation": [0, 2, 1]}}],
    "A grid of shape": [{**GOOD, "order": {"name": "halton", "shape": [ROWS, ROWS]}}],
    "more than 100,000 values or 8 levels": [{**GOOD, "order": bomb()}, {**GOOD, "top_k": [[[[[[[[[[1]]]]]]]]]]}],
    "`sampling` can only be": [{**GOOD, "sampling": "request"}],
    "temperature must be": [{**GOOD, "temperature": -1.0}, {**GOOD, "temperature": "hot"}],
    "top_k must be": [{**GOOD, "top_k": 0}],
    "seed must be a whole number": [{**GOOD, "seed": 0.5}],
    "alphas must rise": [
        {
            **Settings.of(
                et.schedule("uniform", steps=2, process=et.Process(et.Absorbing(2), et.LogLinear()))
            ).to_dict(),
            "alphas": [0.0, 0.9, 0.5, 1.0],
        }
    ],
}


@pytest.mark.parametrize(("sentence", "content"), [(key, each) for key, values in BAD.items() for each in values])
def test_bad_settings_get_one_sentence(sentence, content):
    with pytest.raises(et.EigentimeError, match=re.escape(sentence)) as raised:
        Settings.from_dict(content)
    assert len(str(raised.value)) < 400


def test_files_hold_plans_and_schedules(tmp_path, world):
    clock = et.measure(world, budget=256, orders=["farthest"])
    for followed in (PLAN, et.plan(clock, steps=2), et.schedule("cosine", steps=3, model=world)):
        followed.save(tmp_path / "followed.json")
        arguments = ["export", str(tmp_path / "followed.json"), "--out", str(tmp_path / "a.yaml"), "--seed", "7"]
        done = CliRunner().invoke(app, [*arguments, "--temperature", "0.8"])
        assert done.exit_code == 0, done.output
        read = Settings.from_dict(yaml.safe_load((tmp_path / "a.yaml").read_text()))
        assert read.seed == 7 and read.shaping == et.Shaping(0.8)
        hoped = Settings.of(followed).follows
        for free in range(1, BLOCK + 1):
            known = np.arange(BLOCK) < free
            assert read.follows.steps(known, 3).tolist() == hoped.steps(known, 3).tolist()
            if isinstance(followed, et.Schedule):
                assert np.diff(read.follows.stops(free)).tolist() == followed.counts(free).tolist()
            else:
                assert read.follows.stops(free).tolist() == followed.stops(free).tolist()


def test_unknown_engines_and_broken_files_are_refused(tmp_path):
    PLAN.save(tmp_path / "plan.json")
    out = tmp_path / "a.yaml"
    for arguments in (["plan.json", "--engine", "vllm"], ["nothing.json"]):
        done = CliRunner().invoke(app, ["export", str(tmp_path / arguments[0]), *arguments[1:], "--out", str(out)])
        assert isinstance(done.exception, et.EigentimeError)
    assert not out.exists()


def test_nothing_of_sglang_stays_behind():
    assert not [name for name in sys.modules if name.partition(".")[0] in ("sglang", "eigentime_sglang")]
