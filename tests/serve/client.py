"""A client in a process of its own: python client.py URL AGENT KEY NUMBER HOW, until its input ends.

It follows one trajectory of one agent. Every request is sent with the same id until it is answered. What was
acknowledged is written to standard output, one line of JSON each. HOW says how outcomes are reported: by "id", by
"state" and action, or alternately ("turns"). It needs only the standard library.
"""

from __future__ import annotations

import http.client
import json
import random
import sys
import threading
import time
from typing import Any
from urllib.parse import urlsplit


class Client:
    """One connection, opened again when it breaks."""

    def __init__(self, url: str, agent: str, key: str) -> None:
        self._address, self._agent = urlsplit(url).netloc, agent
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._line: http.client.HTTPConnection | None = None
        self.retries = 0

    def ask(self, verb: str, body: dict[str, Any]) -> Any:
        """Send a request until it is answered."""
        while True:
            try:
                if self._line is None:
                    self._line = http.client.HTTPConnection(self._address, timeout=30.0)
                self._line.request("POST", f"/agents/{self._agent}/{verb}", json.dumps(body), self._headers)
                answer = self._line.getresponse()
                text = answer.read()
                if answer.status == 200:
                    return json.loads(text)
                if answer.status != 503:
                    say(wrong=f"{verb} {body}: {text.decode()}")
                    sys.exit(1)
            except (OSError, http.client.HTTPException):
                if self._line is not None:
                    self._line.close()
                self._line = None
            self.retries += 1
            time.sleep(0.02)


def say(**facts: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps(facts), flush=True)


def main(url: str, agent: str, key: str, number: str, how: str) -> None:
    """Act and report outcomes until standard input ends."""
    over = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    chance, client, name = random.Random(int(number)), Client(url, agent, key), f"{agent}{number}"
    state, n = 0, 0
    while not over.is_set():
        decision = client.ask("act", {"state": state, "request_id": f"{name}:{n}:act"})
        say(decided=[decision["decision_id"], decision["action"]])
        to, reward = chance.randrange(6), round(chance.random(), 6)
        body = {"reward": reward, "next_state": to, "request_id": f"{name}:{n}:observe"}
        if how == "id" or (how == "turns" and n % 2):
            body |= {"decision_id": decision["decision_id"]}
        else:
            body |= {"state": state, "action": decision["action"]}
        receipt = client.ask("observe", body)
        say(told=[receipt["sequence"], state, reward, to])
        if chance.random() < 0.1:  # an impatient client repeats a request that was answered
            again = client.ask("observe", body)
            if again != {"sequence": receipt["sequence"], "repeated": True}:
                say(wrong=f"{body} gave {receipt}, then {again}")
        state, n = to, n + 1
    say(retries=client.retries)


if __name__ == "__main__":
    main(*sys.argv[1:])
