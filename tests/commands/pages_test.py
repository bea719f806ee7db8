"""Opens pages in headless Chromium and holds them against what a reader needs.

    pages_test.py WRITE_SAMPLES [PICTURES]

Each page is opened on narrow and wide screens, light and dark: no errors on the console, nothing
loaded, no sideways scrolling of the page, no empty chart, nothing clipped, no text over another, and
enough contrast. With a second argument, pictures of what was seen are kept in that folder. Skipped, in
words, without Chromium.
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = (360, 1600)
SCHEMES = ("light", "dark")

# Returns a list of complaints about the page. `hidden` elements of closed <details> have no boxes.
CHECKS = r"""
(() => {
  const complaints = [];
  const shown = e => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden';
  const root = document.documentElement, width = root.clientWidth;
  if (root.scrollWidth > width) complaints.push(`scrolls sideways: ${root.scrollWidth} over ${width}`);
  const inBox = e => e.closest('.scrolls, pre');
  for (const e of document.querySelectorAll('body *')) {
    if (!shown(e) || e.closest('.skip') || inBox(e) || e.tagName === 'OPTION') continue;
    const r = e.getBoundingClientRect();
    if (r.width > 0 && (r.left < -1 || r.right > width + 1))
      complaints.push(`beyond the page: <${e.tagName} class="${e.getAttribute('class')}"> ${r.left} to ${r.right}`);
    const style = getComputedStyle(e);
    if (style.overflowX === 'hidden' && !(e instanceof SVGElement) && e.scrollWidth > e.clientWidth + 1)
      complaints.push(`clipped: <${e.tagName}> ${e.textContent.slice(0, 40)}`);
  }
  for (const svg of document.querySelectorAll('svg[role="img"]')) {
    if (!shown(svg)) continue;
    const marks = svg.querySelectorAll('.dot, .mark, .series, .task rect');
    const r = svg.getBoundingClientRect();
    if (marks.length === 0 || r.width < 40 || r.height < 16)
      complaints.push(`an empty chart: ${svg.getAttribute('aria-label')} ${r.width} x ${r.height}`);
    for (const mark of marks) {
      const m = mark.getBoundingClientRect();
      if (!isFinite(m.left) || m.right < r.left - 12 || m.left > r.right + 12 || m.top > r.bottom + 12)
        complaints.push(`outside of its chart: ${mark.outerHTML.slice(0, 80)}`);
    }
    const texts = [...svg.querySelectorAll('text')].filter(t => shown(t) && t.textContent !== '')
                      .map(t => [t, t.getBoundingClientRect()]);
    for (const [t, a] of texts) {
      const task = t.closest('.task'), box = task && task.querySelector('rect').getBoundingClientRect();
      if (task && (a.right > box.right + 1 || a.left < box.left - 1))
        complaints.push(`a name wider than its box: ${t.textContent}`);
      for (const [u, b] of texts) {
        if (t !== u && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 &&
            b.top < a.bottom - 2)
          complaints.push(`texts overlap: "${t.textContent}" and "${u.textContent}"`);
      }
    }
  }
  // Contrast of texts on the card and the ground: WCAG's 4.5.
  const numbers = c => c.match(/[\d.]+/g).map(Number);
  const light = c => {
    const [r, g, b] = numbers(c).slice(0, 3).map(v => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (numbers(c).length === 3 || numbers(c)[3] > 0) return c;
    }
    return 'rgb(255, 255, 255)';
  };
  const seen = new Set();
  for (const e of document.querySelectorAll('p, a, td, th, dd, dt, small, span, text, summary, h1, h2, h3, .why')) {
    if (!shown(e) || e.textContent.trim() === '' || e.closest('.task')) continue;
    const style = getComputedStyle(e), ink = e.tagName === 'text' ? style.fill : style.color;
    const pair = ink + ground(e);
    if (seen.has(pair)) continue;
    seen.add(pair);
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5)
      complaints.push(`too little contrast: ${ink} on ${ground(e)} of "${e.textContent.slice(0, 30)}"`);
  }
  // What can be operated can be reached.
  for (const e of document.querySelectorAll('.scrolls, a, button, input, summary, pre')) {
    if (shown(e) && e.tabIndex < 0) complaints.push(`not reached by the keyboard: <${e.tagName}>`);
  }
  return complaints.slice(0, 20);
})()
"""


class Browser:
    """Headless Chromium, spoken to by its DevTools protocol over two pipes."""

    def __init__(self, program: str, folder: str):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def give_pipes():  # the protocol is on the descriptors 3 and 4
            first, second = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
             "--hide-scrollbars", f"--user-data-dir={folder}/profile", "about:blank"],
            close_fds=False, preexec_fn=give_pipes, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=folder))
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self.events = b"", 0, []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _message(self):
        while b"\0" not in self._buffer:
            got = os.read(self._read, 1 << 16)
            if not got:
                raise RuntimeError("Chromium ended")
            self._buffer += got
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method: str, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url: str, width: int, scheme: str):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._message())

    def value(self, expression: str):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def press(self, key: str):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13}[key],
                      **({"text": "\r"} if key == "Enter" else {}))

    def picture(self, path: pathlib.Path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000),
                "scale": 1}
        data = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        try:
            self._session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)


class PagesTest(unittest.TestCase):
    samples = pictures = None

    @classmethod
    def setUpClass(cls):
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        if program is None:
            raise unittest.SkipTest(
                "no Chromium on PATH: pages are not looked at; ./setup.sh --browser installs one")
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run([cls.samples, cls.folder], check=True)
        cls.browser = Browser(program, cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def open(self, page: str, width: int = 1600, scheme: str = "light"):
        self.browser.open(pathlib.Path(self.folder, page).as_uri(), width, scheme)

    def complaints(self):
        found = self.browser.value(CHECKS)
        for event in self.browser.events:
            method, params = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Log.entryAdded") or (
                    method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning")):
                found.append(f"{method}: {json.dumps(params)[:300]}")
            if method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(f"file://{self.folder}/"):
                    found.append(f"loads {url}")
        return found

    def test_every_page_on_every_screen(self):
        pages = sorted(path.name for path in pathlib.Path(self.folder).glob("*.html"))
        self.assertGreaterEqual(len(pages), 5)
        for page in pages:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    with self.subTest(page=page, width=width, scheme=scheme):
                        self.open(page, width, scheme)
                        if self.pictures:
                            name = f"{page.removesuffix('.html')}_{width}_{scheme}.png"
                            self.browser.picture(pathlib.Path(self.pictures, name))
                        self.assertEqual(self.complaints(), [])
                        # With all that was folded away, too.
                        self.browser.value(
                            "document.querySelectorAll('details').forEach(d => d.open = true)")
                        self.assertEqual(self.complaints(), [])

    def test_the_checks_find_what_is_wrong(self):
        bad = pathlib.Path(self.folder, "bad.htm")
        bad.write_text(
            "<!DOCTYPE html><body style='background:#fff'><p style='color:#ddd'>faint</p>"
            "<div style='width:3000px'>wide</div>"
            "<svg role='img' aria-label='nothing' width='200' height='100'></svg>"
            "<svg role='img' width='200' height='100'><circle class='dot' cx='10' cy='10' r='3'/>"
            "<text x='10' y='50'>one</text><text x='12' y='50'>two</text></svg>"
            "<script>console.error('said'); fetch('https://nowhere.invalid/')</script>",
            encoding="utf-8")
        self.open("bad.htm", 360)
        self.browser.value("new Promise(done => setTimeout(done, 100))")
        found = "\n".join(self.complaints())
        for words in ("scrolls sideways", "beyond the page", "an empty chart: nothing",
                      'texts overlap: "one"', "too little contrast", "said", "loads https://nowhere"):
            self.assertIn(words, found)

    def test_data_does_not_become_markup(self):
        for page in ("full.html", "hostile_plan.html"):
            self.open(page)
            self.assertEqual(self.browser.value("document.scripts.length"), 1)
            self.assertTrue(self.browser.value(
                "document.body.textContent.includes(\"<script>throw new Error('ran')</script>\")"))

    def test_tables_sort_and_filter(self):
        self.open("full.html")
        first = "document.querySelector('#records tbody tr td').textContent"
        medians = ("Array.from(document.querySelectorAll('#records tbody tr')).map("
                   "row => Number(row.cells[3].dataset.sort))")
        self.browser.value("document.querySelectorAll('#records .sort')[3].click()")
        times = self.browser.value(medians)
        self.assertEqual(times, sorted(times))
        self.browser.value("document.querySelectorAll('#records .sort')[3].click()")
        times = self.browser.value(medians)
        self.assertEqual(times, sorted(times, reverse=True))
        self.browser.value("(() => { const box = document.querySelector('input[type=search]');"
                           "box.value = 'GPT_step'; box.dispatchEvent(new Event('input')); })()")
        shown = self.browser.value(
            "Array.from(document.querySelectorAll('#records tbody tr')).filter(r => !r.hidden).length")
        self.assertEqual(shown, 1)
        self.assertIn("1 of ", self.browser.value("document.getElementById('shown').textContent"))
        self.assertTrue(self.browser.value(first))

    def test_the_keyboard_reaches_and_works(self):
        self.open("full.html")
        self.browser.press("Tab")
        self.assertEqual(self.browser.value("document.activeElement.className"), "skip")
        self.browser.value("document.querySelectorAll('#records .sort')[3].focus()")
        self.browser.press("Enter")
        self.assertEqual(self.browser.value(
            "document.querySelector('#records th[aria-sort]').textContent"), "median")

    def test_lanes_widen_and_show_names(self):
        self.open("plan.html", 360)
        names = ("Array.from(document.querySelectorAll('.task text'))"
                 ".filter(t => t.style.display !== 'none').length")
        width = "document.querySelector('.lanes').getBoundingClientRect().width"
        before, narrow = self.browser.value(names), self.browser.value(width)
        for _ in range(8):
            self.browser.value("document.querySelector('[data-zoom=\"2\"]').click()")
        self.assertGreater(self.browser.value(names), before)
        self.assertAlmostEqual(self.browser.value(width), 256 * narrow, delta=256)
        self.assertEqual(self.complaints(), [])
        self.browser.value("document.querySelector('[data-zoom=\"0\"]').click()")
        self.assertAlmostEqual(self.browser.value(width), narrow, delta=1)


if __name__ == "__main__":
    PagesTest.samples = str(pathlib.Path(sys.argv[1]).resolve())
    PagesTest.pictures = sys.argv[2] if len(sys.argv) > 2 else None
    unittest.main(argv=sys.argv[:1])
