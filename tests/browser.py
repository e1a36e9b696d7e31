"""A real browser for tests of pages: headless Chromium, driven by selenium; without either, tests skip."""

import os
import shutil
import tarfile
import time

import pytest

from eigentime.data.packages import Package, fetch
from eigentime.errors import EigentimeError

AXE = Package(
    "axe-core",
    "4.14.0",
    "axe-core-4.14.0.tgz",
    "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af",
    "the accessibility rules",
)


class Browser:
    """One window."""

    def __init__(self):
        webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
        program, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
        if program is None or driver is None:
            pytest.skip("there is no Chromium with its driver: apt-get install chromium chromium-driver")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # Chromium keeps a socket in its temporary folder, whose whole name must have fewer than 108 letters.
        service = webdriver.ChromeService(driver, env={**os.environ, "TMPDIR": "/tmp"})
        self.driver = webdriver.Chrome(options=options, service=service)

    def open(self, path, width=1440, dark=False):
        """A page as it looks in a window of this width."""
        command = self.driver.execute_cdp_cmd
        self.resize(width, 900)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        command("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get(path if isinstance(path, str) else path.as_uri())

    def resize(self, width, height):
        """Make the window this large, a phone's where it is narrow."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait_for(self, script, *arguments, seconds=120):
        """What a script returns, once it returns something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.run(script, *arguments):
                return found
            time.sleep(0.1)
        raise AssertionError(f"nothing came of: {script} {arguments}\n{self.complaints()}")

    def press(self, selector):
        """Click on an element as soon as it is there."""
        self.wait_for("const node = document.querySelector(arguments[0]); node?.click(); return !!node", selector)

    def wait_for_text(self, selector, text):
        """Until an element holds a text."""
        self.wait_for("return document.querySelector(arguments[0])?.textContent.includes(arguments[1])", selector, text)

    def complaints(self):
        """What the page wrote to the console since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def breaches(self):
        """Rules of accessibility that the page breaks, with the places."""
        try:
            with tarfile.open(fetch(AXE)) as archive:
                rules = archive.extractfile("package/axe.min.js").read().decode()
        except EigentimeError as error:
            pytest.skip(str(error))
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": rules})
        found = self.driver.execute_async_script("const done = arguments[0]; axe.run().then(done);")
        return [(each["id"], [node["html"][:120] for node in each["nodes"]][:3]) for each in found["violations"]]

    def quit(self):
        self.driver.quit()
