"""People at work through the API of a real Label Studio, each logged in as themselves."""

import random
from dataclasses import dataclass
from typing import Any

import httpx

from label_studio.interface import BOX, IMAGE, VERDICT
from label_studio.server import StudioServer


def owner(server: StudioServer) -> httpx.Client:
    """The account that the local server was made with."""
    login = {"Authorization": f"Token {server.account.token}"}
    return httpx.Client(base_url=server.url, headers=login, timeout=180)


def invited(server: StudioServer, email: str, password: str) -> httpx.Client:
    """A new member of the organization, as the invitation link makes one; logged in."""
    with owner(server) as http:
        link = http.get("/api/invite").json()["invite_url"]
    client = httpx.Client(base_url=server.url, follow_redirects=True, timeout=180)
    client.get(link)
    form = {
        "email": email,
        "password": password,
        "csrfmiddlewaretoken": client.cookies["csrftoken"],
        "allow_newsletters": "",
        "elaborate": "",
    }
    reply = client.post(link, data=form, headers={"Referer": f"{server.url}{link}"})
    assert reply.is_success, reply.status_code
    assert client.get("/api/current-user/whoami").json()["email"] == email
    client.headers.update({"X-CSRFToken": client.cookies["csrftoken"], "Referer": server.url})
    return client


def verdict(code: str) -> dict[str, Any]:
    """The result entry of a verdict."""
    value = {"choices": [code]}
    return {"from_name": VERDICT, "to_name": IMAGE, "type": "choices", "value": value}


def percent_box(x: float, y: float, width: float, height: float) -> dict[str, Any]:
    """A box that a person drew, in percent."""
    labels = {"rectanglelabels": ["button"]}
    return {
        "id": f"caja-{x}-{y}",
        "from_name": BOX,
        "to_name": IMAGE,
        "type": "rectanglelabels",
        "origin": "manual",
        "value": {"x": x, "y": y, "width": width, "height": height, "rotation": 0, **labels},
    }


@dataclass
class Answer:
    """What one person holds true of one task; `result` None = deleted again."""

    task_id: int
    annotation_id: int
    result: list[dict[str, Any]] | None
    skipped: bool


@dataclass
class Worker:
    """A person who answers tasks at random, and sometimes changes their mind.

    A busy SQLite answers 500, and may have done it all the same: like a person, they look.

    Attributes:
        answers: what they did, the truth that a pull is compared with.
        errors: how often the server answered 5xx.
    """

    http: httpx.Client
    chance: random.Random
    answers: list[Answer]
    errors: int = 0

    def work(self, task_id: int) -> None:
        """Answer one task."""
        skipped = self.chance.random() < 0.1
        result = self._result()
        body = {"result": result, "was_cancelled": skipped, "lead_time": self.chance.uniform(2, 40)}
        path = f"/api/tasks/{task_id}/annotations/"
        reply = self.http.post(path, json=body)
        if reply.status_code >= 500:
            self.errors += 1
            kept = [entry["id"] for entry in self.http.get(path).json()]
        else:
            assert reply.status_code == 201, reply.status_code
            kept = [reply.json()["id"]]
        self.answers += [Answer(task_id, number, result, skipped) for number in kept]
        if kept and self.chance.random() < 0.15:
            self._change(self.chance.choice(self.answers))

    def _change(self, answer: Answer) -> None:
        if answer.result is None:
            return
        path = f"/api/annotations/{answer.annotation_id}/"
        if self.chance.random() < 0.3:
            reply = self.http.delete(path)
            answer.result = None
        else:
            answer.result = self._result()
            reply = self.http.patch(path, json={"result": answer.result})
        assert reply.is_success or reply.is_server_error, reply.status_code
        if reply.is_server_error:
            self.errors += 1
            found = self.http.get(path)
            answer.result = found.json()["result"] if found.is_success else None

    def _result(self) -> list[dict[str, Any]]:
        if self.chance.random() < 0.3:
            return [verdict("absent")]
        x, y = (self.chance.randint(0, 80) for _ in "xy")
        return [verdict("corrected"), percent_box(x, y, 10, 10)]
