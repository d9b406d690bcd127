"""The whole job with shards and dataset on a real S3-compatible server."""

from pathlib import Path

import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard
from s3_server import S3Server

from pipeline.config import OutputConfig
from pipeline.dataset import open_dataset
from pipeline.run import run_job
from schemas.errors import EngineError, InputError

pytestmark = pytest.mark.s3


def test_a_job_from_s3_to_s3_dies_goes_on_and_equals_the_local_one(
    tmp_path: Path, s3: S3Server
) -> None:
    known = shots(6)
    shard = write_shard(tmp_path / "capturas ñ+1.tar", known)
    s3.put("trabajo", {"entrada/capturas ñ+1.tar": shard.read_bytes()})
    local = job(tmp_path, shard)
    run_job(local, engine_factory=scripted(oracle(known)))
    remote = local.model_copy(
        update={
            "input": local.input.model_copy(
                update={"shards": ("s3://trabajo/entrada/*.tar",), "s3_endpoint": s3.endpoint}
            ),
            "output": OutputConfig(dataset="s3://trabajo/salida/v1", s3_endpoint=s3.endpoint),
        }
    )
    with pytest.raises(EngineError):
        run_job(remote, engine_factory=scripted(oracle(known), fail_after=10))
    outcome = run_job(remote, engine_factory=scripted(oracle(known)))
    assert outcome.exit_code == 0
    assert outcome.report.figures.stats.units_reused >= 1
    assert samples(remote.output) == samples(local.output)
    keys = [o["Key"] for o in s3.client().list_objects_v2(Bucket="trabajo")["Contents"]]
    assert "salida/v1/report.html" in keys


def samples(output: OutputConfig) -> list[dict[str, object]]:
    dataset = open_dataset(output.dataset, output.s3_endpoint)
    rows = dataset.table("annotations").drop_columns(["unit_id", "shard"]).to_pylist()
    return sorted(rows, key=lambda row: str(row["sample_id"]))


def test_a_pattern_in_a_bucket_that_matches_nothing_is_refused(
    tmp_path: Path, s3: S3Server
) -> None:
    s3.put("trabajo", {"entrada/a.tar": b"x"})
    config = job(tmp_path, tmp_path)
    wanted = config.input.model_copy(
        update={"shards": ("s3://trabajo/entrda/*.tar",), "s3_endpoint": s3.endpoint}
    )
    with pytest.raises(InputError, match=r"s3://trabajo/entrda/\*\.tar"):
        run_job(config.model_copy(update={"input": wanted}))
