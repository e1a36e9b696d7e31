"""The report page: its numbers are the clock's, nothing in a file becomes code, and a real browser shows all of it."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import eigentime as et
from browser import Browser
from eigentime.report.page import Material, Scene, View, render, view_of
from eigentime.report.rows import checked_rows, read_rows
from test_cli import run  # noqa: F401
from worlds import random_table

COUNTS = [1, 2, 3, 4]
HOSTILE = "</script><script>window.pwned=1</script>\"'><img src=x onerror=window.pwned=1>{{DATA}}"


@pytest.fixture(scope="module")
def model():
    return random_table(3, 5, seed=4)


@pytest.fixture(scope="module")
def clock(model):
    return et.measure(model, budget=64, orders=["low-discrepancy"])


@pytest.fixture(scope="module")
def rows(model, clock):
    return et.compare(model, ["uniform", "jys", "ods", "plan"], [2, 4], samples=8, clock=clock, jys_samples=4)


@pytest.fixture(scope="module")
def page(model, clock, rows):
    settings = {"strategies": ["uniform", "wds", "ods"], "counts": COUNTS, "shown": [2, 4]}
    return et.report(clock, rows, model=model, **settings)


@pytest.fixture(scope="module")
def browser():
    window = Browser()
    yield window
    window.quit()


@pytest.fixture
def opened(browser, page, tmp_path):
    (tmp_path / "report.html").write_text(page)
    browser.open(tmp_path / "report.html")
    return browser


def data_of(page):
    """What the scripts draw."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_every_number_is_the_clocks(page, clock, rows):
    data = data_of(page)
    times = np.array(data["dynamics"]["times"])
    panels = {panel["title"]: panel for panel in data["dynamics"]["panels"]}
    lines = {line["name"]: line for line in panels["Entropy rate"]["lines"]}
    for name, gauge in (("bare gauge", "nonadiabatic"), ("data gauge", "nonadiabatic_data")):
        truth = et.curve(clock, gauge, (np.arange(len(times)) + 0.5) / len(times))
        assert np.allclose(lines[name]["mean"], truth.mean, rtol=1e-4, atol=1e-6)
        band = np.array(lines[name]["high"]) - np.array(lines[name]["low"])
        assert np.allclose(band, 2 * 1.96 * truth.stderr, rtol=1e-2, atol=1e-3)
    assert {line["name"] for line in panels["Wasserstein distance"]["lines"]} == {"mobility", "yoshimura", "practical"}
    for strategy in data["steps"]["strategies"]:
        if strategy["name"] == "jys":
            assert set(strategy["grids"]) == {"2", "4"}
            continue
        for count in COUNTS:
            grid, shown = et.schedule(clock, strategy["name"], steps=count), strategy["grids"][str(count)]
            error = et.path_error(clock, grid)
            assert shown["times"] == pytest.approx(grid.times, abs=1e-4)
            assert shown["error"] == [pytest.approx(error.mean, rel=1e-3), pytest.approx(error.stderr, rel=1e-2)]
    for shown in data["plans"]["plans"]:
        plan = et.plan(clock, shown["count"])
        assert shown["tokens"] == list(plan.counts) and shown["steps"] == plan.step_of(1, 0)[0].tolist()
    errors = {each["name"]: each for each in data["errors"]["strategies"]}
    interval = et.plan(clock, 2).predicted_error.interval()
    assert (errors["plan"]["low"][1], errors["plan"]["high"][1]) == pytest.approx(interval, rel=1e-3)
    chart = data["quality"]["charts"][0]
    mine = {each["name"]: each for each in chart["strategies"]}["ods"]
    found = [row["metrics"][chart["title"].replace(" ", "_")]["mean"] for row in rows if row["strategy"] == "ods"]
    assert mine["mean"] == pytest.approx(found, rel=1e-4) and mine["nfe"] == [2, 4]


def test_the_film_ends_with_the_sample(page, model, clock):
    data = data_of(page)["samples"]
    for scene in data["scenes"]:
        tokens = np.full(model.length, -1)
        for places, values in scene["steps"]:
            tokens[places] = values
        if scene["strategy"] in ("uniform", "wds", "ods"):
            way = et.schedule(clock, scene["strategy"], steps=scene["count"])
        elif scene["strategy"] == "plan":
            way = et.plan(clock, scene["count"])
        else:
            continue
        drawn = et.sample(model, way, 3, seed=0).numpy()
        assert tokens.tolist() == drawn[0].tolist() and scene["others"] == drawn[1:].tolist()
        assert scene["nfe"] == scene["count"] == len(scene["steps"])
        assert sum(len(places) for places, _ in scene["steps"]) == model.length


def test_the_page_needs_nothing_else(page):
    assert len(page.encode()) < 5e6
    assert set(re.findall(r"\w+://[^\s'\"<)]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in html.unescape(page)
    assert not re.search(r"\bsrc=|@import|url\((?!#)|fetch\(|import\(", page)


def test_what_is_missing_is_said(model):
    masked = et.report(et.measure(model, budget=32), strategies=["uniform"], counts=[2])
    for sentence in ("measured without orders", "no comparison was given", "no model was given"):
        assert sentence in masked
    assert 'id="film"' not in masked and "film" not in data_of(masked)
    other = random_table(3, 2, kernel="uniform")
    unmasked = et.report(et.measure(other, budget=32), strategies=["uniform"], counts=[2], model=other, shown=[2])
    assert "this kernel has no mask" in unmasked and 'id="film"' in unmasked


def hostile_page(clock, rows, model):
    wicked = [
        {**row, "strategy": HOSTILE if row["strategy"] == "uniform" else row["strategy"], "sampler": HOSTILE}
        | {"metrics": {HOSTILE: {"mean": 1.0, "stderr": 0.1}}}
        for row in rows
    ]
    process = {**clock.process, "kernel": {**clock.process["kernel"], "name": HOSTILE}}
    named = replace(clock, model=HOSTILE, package=HOSTILE)
    material = Material(
        replace(named, process=process),
        {HOSTILE: {2: et.schedule(clock, "uniform", steps=2)}},
        {HOSTILE: {2: et.path_error(clock, et.schedule(clock, "uniform", steps=2))}},
        rows={HOSTILE: wicked, "x": wicked},
        scenes={2: [Scene(HOSTILE, 2, np.zeros((2, 5), int), [0.5, 0], np.zeros((1, 5), int), np.zeros(0, int))]},
        view=View("text", 3, 3, lambda token: HOSTILE),
    )
    return render(material)


def test_nothing_in_a_file_becomes_markup(clock, rows, model):
    page = hostile_page(clock, rows, model)
    assert page.count("<script") == 2 and page.count("</script") == 2 and "<img" not in page
    assert data_of(page)["steps"]["strategies"][0]["name"] == HOSTILE


def test_nothing_in_a_file_runs(browser, clock, rows, model, tmp_path):
    (tmp_path / "wicked.html").write_text(hostile_page(clock, rows, model))
    browser.open(tmp_path / "wicked.html")
    assert browser.run("return window.pwned") is None and browser.run("return document.images.length") == 0
    assert HOSTILE in browser.run("return document.querySelector('h1').textContent")
    assert HOSTILE in browser.run("return document.querySelector('#steps svg .strong').textContent")
    assert browser.complaints() == []
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s);"
    )
    assert browser.run("return window.pwned") is None  # only the page's own script may run
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())


MOVE = """
const moved = [];
const fire = (node, kind) => node.dispatchEvent(new Event(kind, { bubbles: true }));
for (const section of document.querySelectorAll('section')) {
  section.querySelector('details').open = true;
  for (const input of [...section.querySelectorAll('input[type=range]')]) {
    const before = section.querySelector('.drawing').innerHTML;
    for (const value of [input.min, input.max]) { input.value = value; fire(input, 'input'); }
    moved.push([section.id, 'range', before !== section.querySelector('.drawing').innerHTML]);
  }
  for (const select of [...section.querySelectorAll('select')]) {
    for (const option of select.options) { select.value = option.value; fire(select, 'change'); }
    moved.push([section.id, 'select', true]);
  }
  for (const input of [...section.querySelectorAll('input[type=checkbox], input[type=radio]')]) {
    const before = section.querySelector('.drawing').innerHTML;
    const chosen = input.checked && input.type === 'radio';
    input.click();
    moved.push([section.id, input.type, chosen || before !== section.querySelector('.drawing').innerHTML]);
    if (input.type === 'checkbox') input.click();
  }
  for (const drawing of section.querySelectorAll('svg[role=img]')) {
    const box = drawing.getBoundingClientRect();
    drawing.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + box.width / 2, bubbles: true }));
  }
}
return moved;
"""


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1440, False), (1440, True)])
def test_every_control_moves_and_everyone_can_read_it(opened, tmp_path, width, dark):
    opened.open(tmp_path / "report.html", width, dark)
    moved = opened.run(MOVE)
    assert all(changed for *_, changed in moved), moved
    assert {(section, kind) for section, kind, _ in moved} >= {
        ("film", "range"),
        ("film", "select"),
        ("film", "radio"),
        ("samples", "radio"),
        ("samples", "checkbox"),
        ("steps", "range"),
        ("steps", "checkbox"),
        ("errors", "range"),
        ("errors", "checkbox"),
        ("plans", "range"),
        ("quality", "checkbox"),
    }
    pointed = opened.run("return document.querySelector('#dynamics .readout').textContent")
    assert re.fullmatch(r"t = 0\.4\d*: bare gauge [−\d.]+ · data gauge [−\d.]+", pointed)
    assert opened.run("return document.documentElement.scrollWidth") <= width
    assert opened.breaches() == []
    assert opened.complaints() == []


def test_the_keyboard_is_enough(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    find = opened.driver.find_element
    slider = find(By.CSS_SELECTOR, "#steps input[type=range]")
    marks = "return document.querySelector('#steps path[stroke-width=\"2.6\"]').getAttribute('d').split('M').length - 2"
    slider.send_keys(Keys.HOME)
    assert opened.run(marks) == 1 and slider.get_attribute("aria-valuetext") == "1"
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert opened.run(marks) == 3 and slider.get_attribute("aria-valuetext") == "3"
    find(By.CSS_SELECTOR, "#film input[type=range]").send_keys(Keys.END)
    opened.run(
        "window.seen = []; const caption = document.querySelector('#film .readout');"
        "new MutationObserver(() => window.seen.push(caption.textContent)).observe(caption, { childList: true });"
    )
    find(By.CSS_SELECTOR, "#film button").send_keys(Keys.ENTER)
    opened.driver.set_script_timeout(60)
    opened.driver.execute_async_script(
        "const done = arguments[0];"
        "const look = setInterval(() => {"
        "  if (document.querySelector('#film button').textContent === 'Play') { clearInterval(look); done(); } }, 50);"
    )
    first, *others = opened.run("return window.seen")
    assert "nothing is decided" in first and [caption[:17] for caption in others] == [
        f"Evaluation {step} of 4" for step in range(1, 5)
    ]
    assert "time 0: 5 of 5 places known" in others[-1]
    assert opened.complaints() == []


def test_evaluations_needed(opened, page):
    """The table answers as the certificates do."""
    strategies = data_of(page)["errors"]["strategies"]
    for share in (0.0, 0.5, 1.0):
        level, table = opened.run(
            "const input = document.querySelector('#errors input[type=range]');"
            "input.value = Math.round(input.max * arguments[0]); input.dispatchEvent(new Event('input'));"
            "const cells = [...document.querySelectorAll('#errors .answer tbody tr')].map("
            "  (row) => [...row.children].map((cell) => cell.textContent));"
            "return [Number(document.querySelector('#errors output').textContent), cells];",
            share,
        )
        for each, (name, *answers) in zip(strategies, table, strict=True):
            assert name == each["name"]
            for values, answer in zip((each["mean"], each["high"]), answers, strict=True):
                enough = [count for count, v in zip(each["counts"], values, strict=True) if v <= level]
                assert answer == (str(enough[0]) if enough else f"more than {each['counts'][-1]}")


@pytest.mark.parametrize(
    ("view", "drawn"),
    [
        (View("graph", 12, 12), "#film .tokens circle"),
        (View("roll", 12, None, settings={"rest": 11, "bar": 4}), "#film .tokens rect"),
        (View("image", 12, 12, settings={"shape": [1, 2, 6]}), "#film canvas"),
        (View("image", 12, 12, settings={"shape": [3, 2, 2]}), "#samples canvas"),
        (View("text", 12, 12, "abcdefghijklm".__getitem__), "#film .tokens.text mark"),
    ],
)
def test_tokens_of_every_kind_are_drawn(browser, clock, tmp_path, view, drawn):
    rng = np.random.default_rng(0)
    final = rng.integers(0, 11, 12)
    frames = np.stack([np.where(np.arange(12) % 2 == 0, final, 12 if view.mask else 3), final])
    grid = et.schedule(clock, "uniform", steps=2)
    material = Material(
        replace(clock, length=12),
        {"uniform": {2: grid}},
        {"uniform": {2: et.path_error(clock, grid)}},
        scenes={2: [Scene("uniform", 2, frames, [0.5, 0.0], rng.integers(0, 11, (2, 12)), np.array([0, 2]))]},
        view=view,
    )
    (tmp_path / "kind.html").write_text(render(material))
    browser.open(tmp_path / "kind.html", 390)
    assert browser.run("return document.querySelectorAll(arguments[0]).length", drawn) > 0
    assert browser.complaints() == []


def test_bundled_networks_look_like_what_they_are():
    kinds = {"mnist": "image", "digits": "image", "stories": "text", "lists": "text", "countdown": "graph"}
    assert {name: view_of(et.load(name)).kind for name in kinds} == kinds
    assert view_of(et.load("lists")).spell(0).strip().isalpha()


def test_tokens_of_your_own_model_may_be_pixels(model):
    view = view_of(model, shape=[1, 1, 5])
    assert (view.kind, view.settings) == ("image", {"shape": [1, 1, 5]})
    for wrong in ([5], [1, 2, 2], [2, 1, 5]):
        with pytest.raises(et.EigentimeError, match="shape"):
            view_of(model, shape=wrong)
    with pytest.raises(et.EigentimeError, match="not both"):
        view_of(model, str, [1, 1, 5])


def test_a_network_of_your_own_from_the_command_line(run, tmp_path):  # noqa: F811
    (tmp_path / "mine.py").write_text(
        "import torch\nimport eigentime as et\n\n\ndef build():\n"
        "    process = et.Process(et.Absorbing(5), et.LogLinear())\n"
        "    network = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 4))\n"
        "    return et.wrap(network, process, length=6, time=None)\n"
    )
    np.save(tmp_path / "data.npy", np.random.default_rng(0).integers(0, 4, (64, 6)))
    made = run("measure", "--model", "mine.py:build", "--data", "data.npy", "--budget", "64", "--out", "c.safetensors")
    assert made[0] == 0, made[2]
    words = ("--model", "mine.py:build", "--evaluations", "2", "--strategies", "uniform,ods", "--shape", "1,2,3")
    code, _, err = run("report", "c.safetensors", *words)
    assert code == 0, err
    samples = data_of((tmp_path / "report.html").read_text())["samples"]
    assert samples["kind"] == "image" and samples["shape"] == [1, 2, 3]


def test_command(run, tmp_path, clock, rows):  # noqa: F811
    clock.save(tmp_path / "c.safetensors")
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    (tmp_path / "more.json").write_text(json.dumps({"rows": rows}))
    words = ("c.safetensors", "rows.json", "more.json", "--strategies", "uniform,ods", "-o", "page.html")
    code, out, err = run("report", *words)
    assert code == 0 and "no network needed" in out, err
    charts = data_of((tmp_path / "page.html").read_text())["quality"]["charts"]
    assert {chart["of"] for chart in charts} == {"rows.json", "more.json"}


BAD = [
    (["missing.safetensors"], "no clock file"),
    (["c.safetensors", "missing.json"], "no file of rows"),
    (["c.safetensors", "text.json"], "not a whole JSON"),
    (["c.safetensors", "empty.json"], "holds no rows"),
    (["c.safetensors", "odd.json"], "Row 0 of odd.json"),
    (["c.safetensors", "--strategies", "magic"], "Unknown strategy"),
    (["c.safetensors", "--strategies", "jys"], "a strategy that a clock makes"),
    (["c.safetensors", "--model", "countdown-exact"], "another process"),
    (["c.safetensors", "--evaluations", "0"], "at least 1"),
    (["c.safetensors", "--shape", "1,1,5"], "goes with --model"),
    (["c.safetensors", "--model", "nowhere:build"], "no module"),
    (["c.safetensors", "--samples", "0"], "whole number of at least 1"),
    (["c.safetensors", "-o", "no/such/page.html"], "does not exist"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_gets_one_sentence(run, tmp_path, clock, words, sentence):  # noqa: F811
    clock.save(tmp_path / "c.safetensors")
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "empty.json").write_text("[]")
    (tmp_path / "odd.json").write_text(json.dumps([{"strategy": "ods", "steps": "many"}]))
    before = set(tmp_path.iterdir())
    code, out, err = run("report", *words)
    assert code == 2 and sentence in err and err.count("\n") == 1 and out == "", err
    assert set(tmp_path.iterdir()) == before


def test_rows_keep_what_is_not_finite(tmp_path, rows):
    row = {**rows[0], "path_error": {"mean": "nan", "stderr": "inf"}}
    (tmp_path / "rows.json").write_text(json.dumps([row]))
    found = read_rows(tmp_path / "rows.json")[0]
    assert np.isnan(found["path_error"]["mean"]) and np.isinf(found["path_error"]["stderr"])
    assert checked_rows([found], "it")[0]["metrics"] == rows[0]["metrics"]
