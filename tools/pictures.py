"""Pictures for README and docs, all made from the real things: digits at equal cost, the figures of docs/ideas.md, the
film and screenshots of the report page and the app out of headless Chromium, and the terminal as rich exports it.

    python tools/pictures.py            # all of them, about three minutes
    python tools/pictures.py film page  # only these
"""

import base64
import io
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from hero import hero
from ideas import places, times
from PIL import Image
from rich.console import Console
from rich.text import Text

import eigentime as et
from eigentime.app import serve

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
EVALUATIONS = 8
WIDTHS, SCHEMES = (390, 1440), {"light": False, "dark": True}
LARGEST = {"film": 1_500_000, "other": 300_000}
"""Bytes of a file."""
COLOURS, WIDTH = 64, 680
STILL = {"first": 900, "step": 600, "last": 3200}
"""Milliseconds that the film's frames stand."""
STAGE = """
const names = { uniform: 'Equal steps', plan: 'Measured plan' };
document.body.style.cssText = `padding:10px;width:${arguments[1]}px`;
const film = document.querySelector('#film');
for (const node of document.body.children) if (!node.contains(film)) node.style.display = 'none';
for (const node of document.querySelectorAll('main > *')) if (node !== film) node.style.display = 'none';
for (const node of film.querySelectorAll('h2, .lead, details, fieldset, .controls')) node.style.display = 'none';
for (const caption of film.querySelectorAll('.readout')) caption.style.minHeight = '3.1em';
film.querySelector('.pair').style.gridTemplateColumns = '1fr 1fr';
for (const label of film.querySelectorAll('.pair .control')) {
  const title = document.createElement('h2');
  title.textContent = `${names[label.querySelector('select').value]}, ${arguments[0]} evaluations`;
  title.style.cssText = 'font-size:1.08rem;color:var(--mark)';
  label.replaceWith(title);
}
film.style.cssText = 'margin:0;padding:18px 22px';
document.querySelector('main').style.cssText = 'padding:0;margin:0;max-width:none';
"""
REACH = """
const input = document.querySelector('#film .controls input[type=range]');
input.value = arguments[0];
input.dispatchEvent(new Event('input', { bubbles: true }));
"""


@cache
def page(name: str, order: str) -> Path:
    """A report on a network, in a folder of its own."""
    model = et.load(name)
    shape = model.task.shape if model.task else None
    clock = et.measure(model, orders=[order], shape=shape, budget=256, progress=True)
    path = Path(tempfile.mkdtemp(prefix="eigentime-pictures-")) / "report.html"
    et.report(clock, model=model, out=path, strategies=["uniform", "wds", "ods"], shown=[8, 16], samples=1)
    return path


def film() -> None:
    """One digit by equal steps and by a plan, seed 0, at equal cost: the report page's own film, frame by frame."""
    browser = Browser()
    browser.open(page("mnist", "halton"), WIDTH + 20)
    browser.run(f"document.querySelector('#film input[type=radio][value=\"{EVALUATIONS}\"]').click()")
    browser.run(STAGE, EVALUATIONS, WIDTH)
    frames = []
    for step in range(EVALUATIONS + 1):
        browser.run(REACH, step)
        frames.append(_shot(browser, "#film"))
    browser.quit()
    palette = frames[len(frames) // 2].quantize(COLOURS)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    spans = [STILL["first"], *[STILL["step"]] * (EVALUATIONS - 1), STILL["last"]]
    held = io.BytesIO()
    flat[0].save(held, "gif", save_all=True, append_images=flat[1:], duration=spans, loop=0, optimize=True)
    _keep("film.gif", held.getvalue(), LARGEST["film"])


def report() -> None:
    """The report page on a phone and on a desk, light and dark, from its top to the end of the film."""
    browser = Browser()
    for width in WIDTHS:
        for scheme, dark in SCHEMES.items():
            browser.open(page("stories", "low-discrepancy"), width, dark)
            end = browser.run("return document.querySelector('#film').getBoundingClientRect().bottom + 24")
            _keep_shot(f"report-{width}-{scheme}.png", browser, width, end)
    browser.quit()


def app() -> None:
    """The app after measuring and generating, on a phone and on a desk, light and dark."""
    running, address = serve(wait=False)
    browser = Browser()
    for width in WIDTHS:
        for scheme, dark in SCHEMES.items():
            browser.open(address, width, dark)
            browser.press("#measure")
            browser.wait_for_text("#told", "Measured")
            browser.press("#generate")
            browser.wait_for("return !!document.querySelector('#stage iframe')")
            end = browser.run("return document.querySelector('#stage').getBoundingClientRect().bottom + 24")
            browser.resize(width, int(end))
            browser.driver.switch_to.frame(0)  # a frame out of sight is not drawn
            browser.wait_for("return document.querySelectorAll('#plans svg').length === 1")
            browser.driver.switch_to.default_content()
            time.sleep(5)
            _keep_shot(f"app-{width}-{scheme}.png", browser, width, end)
    browser.quit()
    running.close()


def terminal() -> None:
    """What the first commands say."""
    with tempfile.TemporaryDirectory() as folder:
        console = Console(record=True, width=96, file=io.StringIO())
        for words in (
            "measure countdown --orders low-discrepancy --out countdown.safetensors",
            "plan countdown.safetensors --steps 8 --out plan8.json",
            "sample countdown --schedule plan8.json --num-samples 1",
        ):
            console.print(Text(f"$ eigentime {words}", style="bold green"))
            command = [sys.executable, "-m", "eigentime", *words.split()]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
            console.print(Text(done.stdout.rstrip()))
        drawn = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="eigentime"), flags=re.S)  # none is fetched
        _keep("terminal.svg", drawn.encode(), LARGEST["other"])


def _shot(browser: Browser, selector: str) -> Image.Image:
    """One element."""
    from selenium.webdriver.common.by import By

    data = browser.driver.find_element(By.CSS_SELECTOR, selector).screenshot_as_png
    return Image.open(io.BytesIO(data)).convert("RGB")


def _keep_shot(name: str, browser: Browser, width: int, height: float) -> None:
    """The page from its top down to a height, as a small PNG."""
    area = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    command = browser.driver.execute_cdp_cmd
    command(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": int(height), "deviceScaleFactor": 1, "mobile": width < 600},
    )
    shot = command("Page.captureScreenshot", {"clip": area, "captureBeyondViewport": True})["data"]
    image = Image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB")
    held = io.BytesIO()
    image.quantize(128, dither=Image.Dither.NONE).save(held, "png", optimize=True)
    _keep(name, held.getvalue(), LARGEST["other"])


def _keep(name: str, data: bytes, largest: int) -> None:
    if len(data) > largest:
        raise SystemExit(f"{name} has {len(data):,} bytes, more than {largest:,}.")
    (PICTURES / name).write_bytes(data)
    print(f"wrote docs/pictures/{name} ({len(data) / 1000:.0f} kB)")


def top() -> None:
    """Digits at equal cost, and the curve."""
    _keep("hero.png", hero(), LARGEST["other"])


def ideas() -> None:
    """What a step, its time and its places cost."""
    _keep("idea-times.png", times(), LARGEST["other"])
    _keep("idea-places.png", places(), LARGEST["other"])


MAKERS: dict[str, Callable[[], None]] = {
    "hero": top,
    "ideas": ideas,
    "film": film,
    "page": report,
    "app": app,
    "terminal": terminal,
}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or MAKERS:
        MAKERS[wanted]()
