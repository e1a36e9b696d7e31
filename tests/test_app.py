"""The app: what a visitor can do, and the page driven in a real browser by two visitors at once."""

import json
import time

import pytest

import eigentime as et
from browser import Browser
from eigentime.app import Visit, named_models, serve
from eigentime.errors import EigentimeError
from test_cli import run  # noqa: F401

KNOWN = {"binomial-exact": "binomial-exact"}


@pytest.fixture(scope="module")
def visit():
    seen = []
    found = Visit.measured("binomial-exact", KNOWN, 32, 0, lambda done, total, note="": seen.append((done, total)))
    assert seen and all(0 < done <= total for done, total in seen)
    yield found
    found.close()
    assert not found.folder.exists()


def test_the_recommended_way_is_the_cheapest(visit):
    count = 4
    costs = {name: et.path_error(visit.clock, et.schedule(visit.clock, name, steps=count)).mean for name in ("ods",)}
    found = visit.certified(count)
    assert found["ods"].mean == costs["ods"]
    best, sentence = visit.recommendation(count)
    assert found[best].mean == min(each.mean for each in found.values()) and f"Use {best}:" in sentence


def test_what_is_saved_is_what_is_shown(visit):
    kept = et.Schedule.load(visit.saved("ods", 4))
    assert kept.times.tolist() == et.schedule(visit.clock, "ods", steps=4).times.tolist()
    other = Visit(visit.model, visit.clock, visit.folder.parent / "other")
    assert other.folder != visit.folder


def test_bad_requests_get_a_sentence(visit, tmp_path):
    for act, sentence in (
        (lambda: Visit.measured("/etc", KNOWN, 32, 0), "choose one of the list"),
        (lambda: Visit.measured("binomial-exact", KNOWN, 10**9, 0), "The budget must be"),
        (lambda: visit.way("../x", 4), "There is no strategy"),
        (lambda: visit.saved("ods", 10**6), "The number of evaluations"),
        (lambda: visit.side_by_side("uniform", "ods", 4, -1), "The seed must be"),
        (lambda: named_models([tmp_path]), "not a model folder"),
    ):
        with pytest.raises(EigentimeError, match=sentence):
            act()


def test_without_gradio_there_is_one_sentence(run, monkeypatch):  # noqa: F811
    monkeypatch.setattr("eigentime.app.layout.find_spec", lambda name: None)
    code, out, err = run("app")
    assert code == 2 and err == "eigentime: The app needs gradio: pip install 'eigentime[app]'.\n" and out == ""


def waited(browser, script, *arguments):
    """What a script returns once it returns something."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := browser.run(script, *arguments):
            return found
        time.sleep(0.1)
    raise AssertionError(f"nothing came of: {script}\n{browser.complaints()}")


TEXT = "const node = document.querySelector(arguments[0]); return node && node.textContent.includes(arguments[1])"
PRESS = "const node = document.querySelector(arguments[0]); if (!node) return false; node.click(); return true"


def choose(browser, name):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    waited(browser, "return !!document.querySelector('#model input')")
    box = browser.driver.find_element(By.CSS_SELECTOR, "#model input")
    box.click()
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(name, Keys.ENTER)


def test_two_visitors_from_choice_to_download():
    pytest.importorskip("gradio", reason="gradio is not installed")
    one = Browser()
    two = Browser()
    page, address = serve(wait=False)
    try:
        assert address.startswith("http://127.0.0.1:")
        for window, name in ((one, "binomial-exact"), (two, "trigram-exact")):
            window.open(address)
            choose(window, name)
            waited(window, PRESS, "#measure")
        for window, name in ((one, "binomial-exact"), (two, "trigram-exact")):
            waited(window, TEXT, "#told", f"Measured {name}")
            waited(window, TEXT, "#advice", "Use ")
        waited(one, PRESS, "#generate")
        waited(one, "return !!document.querySelector('#stage iframe')")
        one.driver.switch_to.frame(0)
        waited(one, "return document.querySelectorAll('#film .tokens').length === 2")
        one.driver.switch_to.default_content()
        link = "const a = document.querySelector('a#download, #download a, a[download]'); return a && a.href"
        contents = []
        for window in (one, two):
            url = waited(window, link)
            script = "const done = arguments[1]; fetch(arguments[0]).then((got) => got.text()).then(done)"
            contents.append(json.loads(window.driver.execute_async_script(script, url)))
        models = [each.get("provenance", {}).get("model") for each in contents]
        assert models[0] != models[1], contents
        fetched = one.run("return performance.getEntriesByType('resource').map((each) => each.name)")
        assert all(each.startswith((address, "data:", "blob:")) for each in fetched), fetched
    finally:
        page.close()
        one.quit()
        two.quit()
