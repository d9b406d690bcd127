"""Writes the three forms of the report into the dataset."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.config import JobConfig
from pipeline.dataset import Dataset
from pipeline.partition import Partition
from pipeline.report.figures import RunFigures, make_figures
from pipeline.report.gallery import make_cards, reject_lines
from pipeline.report.html import render_page
from pipeline.report.json_report import report_json
from pipeline.report.last_work import REPORT
from pipeline.report.stats import RunStats
from pipeline.report.summary import summary_text
from transforms.commit import RUN
from transforms.profiles.load import load_profile
from transforms.storage import join_uri

_REJECT_LINES = 50


@dataclass(frozen=True, slots=True)
class Report:
    """The figures and where their three forms lie."""

    figures: RunFigures
    json_uri: str
    text_uri: str
    html_uri: str


def write_report(
    dataset: Dataset, stats: RunStats, config: JobConfig, partition: Partition | None = None
) -> Report:
    """Make the figures of a run and write `report.json`, `report.txt` and `report.html`.

    The report of a partition lies in `_run/partition-<i>-of-<n>/`: several may end at once.

    Raises:
        DatasetError: if a committed part is missing or damaged.
        CountMismatchError: if the counts of a unit do not add up.
        StorageError: if a file cannot be written.
    """
    figures = make_figures(dataset, stats, config.cost, config.decision.threshold)
    # Pixels lie with the shards, which may be on another server than the dataset.
    pictured = replace(dataset, input_endpoint=config.input.s3)
    cards, hidden = make_cards(pictured)
    rejects = reject_lines(dataset, _REJECT_LINES)
    notice = " ".join(load_profile(config.model.profile).notices(config.model.checkpoint)) or None
    page = render_page(figures, cards, hidden, rejects, notice)
    folder = join_uri(dataset.uri, RUN, partition.name) if partition else dataset.uri
    report = Report(
        figures=figures,
        json_uri=join_uri(folder, REPORT),
        text_uri=join_uri(folder, "report.txt"),
        html_uri=join_uri(folder, "report.html"),
    )
    dataset.storage.write_atomic(report.text_uri, summary_text(figures).encode())
    dataset.storage.write_atomic(report.html_uri, page.encode())
    dataset.storage.write_atomic(report.json_uri, report_json(figures).encode())
    return report
