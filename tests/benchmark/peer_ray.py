"""Ray Data LLM, in an environment of its own that sees this project's vLLM.

Ray 2.60 is made for vLLM 0.29. Its multimodal stage looks for `vllm.entrypoints.chat_utils`, which
0.32 has no more, so that the stages before the engine cannot run: prompts are rendered with the
model's template before the clock starts, and pictures decoded by `preprocess`. Both favour it.
Its engine keeps the first answer only: n answers are n rows. An engine is started for each
dataset that is run, by design, and a placement group of CPUs stands for the GPU it asks for. The
clock runs from the moment the first answered row was asked (its end less the engine's own time for
it) to the last row; the rest of the run is its start, which its CPU seconds have in them.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import tempfile
import time

from peer_protocol import Turn, Wire, write_answers

BATCH = 16
"""Rows of a batch, eight at once: Ray asks for no less than the engine takes at once."""


def rows_of(turn: Turn, model: str) -> list[dict]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    rows = []
    for request_id, body in turn.bodies().items():
        turns = [{**one, "content": parts_of(one["content"])} for one in body["messages"]]
        prompt = tokenizer.apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **body["chat_template_kwargs"]
        )
        picture = next(part for part in body["messages"][-1]["content"] if "image_url" in part)
        png = base64.b64decode(picture["image_url"]["url"].partition(",")[2])
        skip = {"messages", "chat_template_kwargs", "n"}
        params = {name: value for name, value in body.items() if name not in skip}
        for index in range(body["n"]):
            seed = {"seed": body["seed"] + index} if "seed" in body else {}
            rows.append(
                {
                    "key": f"{request_id}/{index}",
                    "prompt": prompt,
                    "png": png,
                    "uuid": picture["uuid"],
                    "params": json.dumps({**params, **seed}),
                }
            )
    return rows


def parts_of(content: str | list[dict]) -> str | list[dict]:
    if isinstance(content, str):
        return content
    return [{"type": "image"} if "image_url" in part else part for part in content]


def before(row: dict) -> dict:
    from PIL import Image

    return {
        "prompt": row["prompt"],
        "multimodal_data": {"image": Image.open(io.BytesIO(row["png"])).convert("RGB")},
        "multimodal_uuids": {"image": [row["uuid"]]},
        "sampling_params": json.loads(row["params"]),
        "key": row["key"],
    }


def after(row: dict) -> dict:
    return {
        "key": row["key"],
        "text": row["generated_text"],
        "tokens": row["num_generated_tokens"],
        "asked": time.time() - row["time_taken_llm"],
        "done": time.time(),
    }


def one_round(model: str, engine: dict, turn: Turn) -> tuple[float, float]:
    """Seconds without and for the start."""
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    rows = rows_of(turn, model)
    config = vLLMEngineProcessorConfig(
        model_source=model,
        engine_kwargs={**engine, "generation_config": "vllm", "disable_log_stats": True},
        batch_size=BATCH,
        concurrency=1,
        chat_template_stage=False,
        tokenize_stage=False,
        detokenize_stage=False,
        prepare_multimodal_stage=False,
        log_engine_metrics=False,
        placement_group_config={"bundles": [{"CPU": 1}]},
    )
    began = time.time()
    dataset = ray.data.from_items(rows)
    found = build_processor(config, preprocess=before, postprocess=after)(dataset).take_all()
    total = time.time() - began
    texts: dict[str, list[str]] = {}
    for row in sorted(found, key=lambda row: int(row["key"].rpartition("/")[2])):
        texts.setdefault(row["key"].rpartition("/")[0], []).append(row["text"])
    write_answers(turn.answers, texts, sum(row["tokens"] for row in found))
    seconds = max(row["done"] for row in found) - min(row["asked"] for row in found)
    return seconds, total - seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--engine", default="{}", help="engine arguments as JSON")
    given = parser.parse_args()
    wire = Wire()
    import ray

    with tempfile.TemporaryDirectory(prefix="ray-") as folder:
        # Logical CPUs: with two, its stages would wait for one another for ever.
        ray.init(
            num_cpus=8, include_dashboard=False, _node_ip_address="127.0.0.1", _temp_dir=folder
        )
        wire.say(start=0.0)
        for turn in wire.turns():
            seconds, start = one_round(given.model, json.loads(given.engine), turn)
            wire.say(seconds=seconds, start=start)
        ray.shutdown()
