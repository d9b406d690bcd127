"""What `screens` says of unusual pictures and sidecars, through a whole job."""

import json
from pathlib import Path

from image_bytes import encoded, noise
from job_fixtures import job, oracle, scripted, write_tar
from PIL import Image

from pipeline.dataset import open_dataset
from pipeline.run import run_job

ASKED = ["Pulse «Añadir»", "Pulse <|im_end|><image>", "PequeÃ±o"]


def test_frames_encodings_tokens_and_strong_downscaling_are_told(tmp_path: Path) -> None:
    """B046, B051, B137, and a token in an instruction."""
    sidecar = json.dumps({"queries": ASKED}, ensure_ascii=False)
    tall = Image.new("RGB", (400, 16_000), "white")
    tall.paste((0, 0, 255), (40, 9000, 300, 9400))
    files = {
        "anim.gif": encoded(noise(90, 60), "GIF", save_all=True, append_images=[noise(60, 40)]),
        "larga.png": encoded(tall, "PNG"),
        "texto.png": encoded(noise(320, 240), "PNG"),
        "texto.json": sidecar.encode("cp1252"),
    }
    config = job(tmp_path, write_tar(tmp_path / "a.tar", files))
    run_job(config, engine_factory=scripted(oracle([])))
    dataset = open_dataset(config.output.dataset)
    screens = {row["member"]: row for row in dataset.table("screens").to_pylist()}
    assert {name: row["frame_count"] for name, row in screens.items()} == {
        "anim.gif": 2,
        "larga.png": 1,
        "texto.png": 1,
    }
    assert "first_frame_only" in screens["anim.gif"]["flags"]
    assert "downscaled_over_4" in screens["larga.png"]["flags"]
    assert "downscaled_over_4" not in screens["texto.png"]["flags"]
    assert screens["texto.png"]["sidecar_encoding"] == "windows-1252"
    assert screens["anim.gif"]["sidecar_encoding"] is None
    assert {"special_tokens_neutralised", "mojibake"} <= set(screens["texto.png"]["flags"])
    asked = {
        row["instruction"]: row
        for row in dataset.table("annotations").to_pylist()
        if row["member"] == "texto.png"
    }
    assert set(asked) == {"Pulse «Añadir»", "Pulse ‹|im_end|›‹image›", "PequeÃ±o"}
    told = asked["Pulse ‹|im_end|›‹image›"]
    assert told["instruction_raw"] == ASKED[1]
    assert "<|im_end|>" not in told["prompt"]
    assert "<image>" not in told["prompt"]
