"""Keep a dataset's own files out of the input it is made from."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.config import JobConfig
from pipeline.unit_order import ORDER
from schemas.errors import ConfigError
from schemas.records import Shard
from schemas.tables import TABLES
from transforms.commit import COMMITS, RUN
from transforms.shards import INDEX
from transforms.storage import join_uri, normalize_uri


def without_output(shards: Sequence[Shard], config: JobConfig) -> list[Shard]:
    """`shards` without the tables and records that this job itself writes.

    Args:
        shards: what the input patterns match.
        config: the job.

    Raises:
        ConfigError: if the dataset lies in a folder of images, where its files would be taken for
            new members by the next run.
    """
    dataset = normalize_uri(config.output.dataset).rstrip("/") + "/"
    if dataset.startswith("s3://") and config.input.s3_endpoint != config.output.s3_endpoint:
        return list(shards)
    own = tuple(join_uri(dataset, name) + "/" for name in (*TABLES, COMMITS, RUN, INDEX, ORDER))
    kept = [shard for shard in shards if not shard.uri.startswith(own)]
    for shard in kept:
        if shard.uri.endswith("/") and dataset.startswith(shard.uri):
            raise ConfigError(
                f"output.dataset = {dataset} lies in the input folder {shard.uri}, which is read "
                "at any depth; put the dataset beside it"
            )
    return kept
