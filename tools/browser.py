"""A headless Chromium, driven over a pair of pipes: no driver, no port, no network.

The protocol is that of Chromium's developer tools: JSON messages that end in a zero
byte, to file descriptor 3 of the browser and from its descriptor 4.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
)


def find_chromium() -> str | None:
    """Where it is; `BISVM_CHROMIUM` names another."""
    named = os.environ.get("BISVM_CHROMIUM")
    found = [shutil.which(name) for name in ((named,) if named else NAMES)]
    return next((path for path in found if path), None)


class Browser:
    """One page of a browser of its own, and all that it complains about."""

    def __init__(self, executable: str, profile: Path):
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # The shell puts the pipes where the browser looks for them.
        command = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        words = [executable, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", command, *words],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._rest = 0, b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exception: Any) -> None:
        # The group is the browser's own: it was started as a session of its own.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def send(self, method: str, **params: Any) -> Any:
        """The answer to a command."""
        self._number += 1
        message: dict[str, Any] = dict(id=self._number, method=method, params=params)
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, seconds: float = 60.0) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\0" not in self._rest:
            left = max(deadline - time.monotonic(), 0.0)
            ready, _, _ = select.select([self._from], [], [], left)
            part = os.read(self._from, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser does not answer")
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, path: Path) -> None:
        """Open a file, and wait until all of it is there."""
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        while not self._loaded():
            self.events.append(self._receive())

    def _loaded(self) -> bool:
        return any(e.get("method") == "Page.loadEventFired" for e in self.events)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        done = self.send(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"]))
        return done["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and dialogs."""
        self.evaluate("1")  # All that came before has been received then.
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown" or (
                method == "Page.javascriptDialogOpening"
            ):
                found.append(json.dumps(params))
            elif method == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif method == "Runtime.consoleAPICalled":
                found.append(json.dumps(params["args"]))
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for, but data of the page itself."""
        method = "Network.requestWillBeSent"
        sent = [event for event in self.events if event.get("method") == method]
        urls = [event["params"]["request"]["url"] for event in sent]
        return [url for url in urls if not url.startswith("data:")]

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def point(self, x: float, y: float) -> None:
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def show(self, *, dark: bool = False, width: int = 1000, height: int = 800) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def screenshot(self) -> str:
        """The whole page as PNG, in base64."""
        return self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"]

    def names_of_images(self) -> list[str]:
        """What a screen reader says of every picture."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [
            node.get("name", {}).get("value", "")
            for node in nodes
            if node.get("role", {}).get("value") in ("image", "img")
            and not node.get("ignored")
        ]
