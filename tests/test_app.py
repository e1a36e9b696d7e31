"""The app: what a visitor can do, and the page driven in a real browser by two visitors at once."""

import html
import json
import re
import time

import pytest

import eigentime as et
from browser import Browser
from eigentime.app import Visit, named_models, serve
from eigentime.errors import EigentimeError
from test_cli import run  # noqa: F401

NAME = "countdown-exact"
KNOWN = {NAME: NAME, "one": "binomial-exact"}


@pytest.fixture(scope="module")
def visit():
    seen = []
    found = Visit.measured(NAME, KNOWN, 32, 0, lambda done, total, note="": seen.append((done, total)))
    assert seen and all(0 < done <= total for done, total in seen)
    yield found
    found.close()
    assert not found.folder.exists()


def test_the_recommended_way_is_the_cheapest(visit):
    count = 4
    found = visit.certified(count)
    grids = {name: et.schedule(visit.clock, name, steps=count) for name in found if name != "plan"}
    assert {name: found[name].mean for name in grids} == {
        name: et.path_error(visit.clock, grid).mean for name, grid in grids.items()
    }
    best, sentence = visit.recommendation(count)
    assert best == "plan" and f"Use {best}:" in sentence
    assert found[best].mean == min(each.mean for each in found.values())


def test_what_is_saved_is_what_is_shown(visit):
    kept = et.Schedule.load(visit.saved("ods", 4))
    assert kept.times.tolist() == et.schedule(visit.clock, "ods", steps=4).times.tolist()


def test_the_frame_shows_every_schedule_and_the_plan(visit):
    page = html.unescape(visit.side_by_side("uniform", "plan", 4, 0))
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    assert {each["name"] for each in data["steps"]["strategies"]} == set(visit.strategies()) - {"plan"}
    assert [each["count"] for each in data["plans"]["plans"]] == [4]
    assert {scene["strategy"] for scene in data["samples"]["scenes"]} == {"uniform", "plan"}


def test_bad_requests_get_a_sentence(visit, tmp_path):
    for act, sentence in (
        (lambda: Visit.measured("/etc", KNOWN, 32, 0), "choose one of the list"),
        (lambda: Visit.measured(NAME, KNOWN, 10**9, 0), "The budget must be"),
        (lambda: Visit.measured("one", KNOWN, 32, 0), "nothing to choose"),
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


def choose(browser, name):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.wait_for("return !!document.querySelector('#model input')")
    box = browser.driver.find_element(By.CSS_SELECTOR, "#model input")
    box.click()
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(name, Keys.ENTER)


def downloaded(browser, folder):
    """The file behind the button, as the browser saves it."""
    folder.mkdir()
    allowed = {"behavior": "allow", "downloadPath": str(folder)}
    browser.driver.execute_cdp_cmd("Page.setDownloadBehavior", allowed)
    browser.press("#download")
    end = time.monotonic() + 20
    while time.monotonic() < end and not (found := list(folder.glob("*.json"))):
        time.sleep(0.1)
    return json.loads(found[0].read_text())


def test_two_visitors_from_choice_to_download(tmp_path):
    pytest.importorskip("gradio", reason="gradio is not installed")
    windows = {"trigram-exact": Browser(), "lists-exact": Browser()}
    page, address = serve(wait=False)
    try:
        assert address.startswith("http://127.0.0.1:")
        for name, window in windows.items():
            window.open(address)
            choose(window, name)
            window.press("#measure")
        for name, window in windows.items():
            window.wait_for_text("#told", f"Measured {name}")
            window.wait_for_text("#advice", "Use plan: with 8 evaluations")
        for name, window in windows.items():
            visit = Visit.measured(name, named_models(), 128, 0)
            assert downloaded(window, tmp_path / name) == json.loads(visit.saved("plan", 8).read_text())
            visit.close()
        one = windows["trigram-exact"]
        one.press("#generate")
        one.wait_for("return !!document.querySelector('#stage iframe')")
        one.driver.switch_to.frame(0)
        one.wait_for("return document.querySelectorAll('#film .tokens').length === 2")
        one.driver.switch_to.default_content()
        fetched = one.run("return performance.getEntriesByType('resource').map((each) => each.name)")
        assert all(each.startswith((address, "data:", "blob:")) for each in fetched), fetched
        assert not one.complaints()
    finally:
        page.close()
        for window in windows.values():
            window.quit()
