"""A training that was killed goes on as if nothing had happened: the same weights in the end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pipeline.nano import train
from pipeline.nano.screens import Split
from pipeline.nano.train import STAGES, Trainer

SMALL = Split(sizes=((256, 192), (192, 256)))


def stage(name: str, steps: int) -> train.Stage:
    """A stage of the real sequence, with few steps of few screens."""
    whole = next(one for one in STAGES if one.name == name)
    return replace(whole, steps=steps, batch=2, split=SMALL, rough_split=SMALL, warm_up=2)


SHORT = (stage("see", 2), stage("ask", 3))


class KilledError(Exception):
    """Stands for the end of the process: nothing of it but the files is used again."""


def killed_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Trainer.learn

    def until(trainer: Trainer, of: train.Stage, done: int) -> train.Report:
        if trainer.step == steps:
            raise KilledError
        return learn(trainer, of, done)

    monkeypatch.setattr(Trainer, "learn", until)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {**trainer.model.state_dict(), **trainer.heads.state_dict()}


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """One thread, so that sums have one order, and no look at held-out screens."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Trainer, "examine", lambda trainer, stage: {})
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return weights(train.train(tmp_path_factory.mktemp("straight"), SHORT, "cpu"))


@pytest.mark.parametrize("steps", [1, 2, 4], ids=["before a save", "between stages", "in a stage"])
def test_killed_and_started_again_it_ends_with_the_same_weights(
    undisturbed: dict[str, torch.Tensor],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: int,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(train, "SAVE_EVERY", 2)
        killed_after(steps, patched)
        with pytest.raises(KilledError):
            train.train(tmp_path, SHORT, "cpu")
    (tmp_path / "state.part").write_bytes(b"half a state")
    found = weights(train.train(tmp_path, SHORT, "cpu"))
    assert found.keys() == undisturbed.keys()
    for name, tensor in found.items():
        torch.testing.assert_close(tensor, undisturbed[name], rtol=0, atol=1e-6, msg=name)
