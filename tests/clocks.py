"""Time that passes when a test says so."""

import time


class Clock:
    """`time.perf_counter`, which jumps ahead by `pass_time`.

    Time limits of many seconds then pass at a chosen moment, and at no other one.
    """

    def __init__(self, monkeypatch):
        self._real, self._ahead = time.perf_counter, 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self._real() + self._ahead)

    def pass_time(self, seconds):
        self._ahead += seconds
