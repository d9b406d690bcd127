"""`pantalla gold`: what people vouch for, as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import DatasetUri, S3Endpoint

if TYPE_CHECKING:
    from pipeline.gold import Agreement, Gold


def gold(
    dataset: DatasetUri,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The Parquet file, local or s3://; default: gold/gold.parquet in the dataset.",
        ),
    ] = None,
    s3_endpoint: S3Endpoint = None,
) -> None:
    """Write what reviewers vouch for, with who, and what the model had answered.

    Samples whose reviews contradict each other or themselves are listed apart, for another look.
    """
    from pipeline.dataset import open_dataset
    from pipeline.gold import GOLD_FILE, make_gold, write_gold
    from transforms.storage import join_uri

    opened = open_dataset(dataset, s3_endpoint)
    made = make_gold(opened)
    target = out or join_uri(opened.uri, *GOLD_FILE.split("/"))
    listed = write_gold(made, target, s3_endpoint)
    for line in gold_lines(made):
        typer.echo(line)
    typer.echo(f"{'Gold':<25}{target}")
    if made.second_look:
        typer.echo(f"{'Look again':<25}{listed}")


def gold_lines(made: Gold) -> list[str]:
    """What gold holds, for a person."""
    lines = [_line("Samples reviewed", made.samples)]
    lines += [_line(f"  {name}", count) for name, count in sorted(made.outcomes.items())]
    lines += [_line(f"  {name}", count) for name, count in sorted(made.set_aside.items())]
    lines.append(_line("  to be looked at again", len(made.second_look)))
    lines += _agreement_lines(made.agreement)
    for work in made.reviewers:
        middle = "" if work.median_s is None else f", {work.median_s:.0f} s each (median)"
        told = f"{work.reviews} reviews, {work.hours:.1f} h{middle}"
        lines.append(_line(f"Reviewer {work.reviewer or '?'}", told))
    return lines


def _agreement_lines(found: Agreement) -> list[str]:
    if not found.pairs:
        return [_line("Agreement", "no sample has two reviews (see label_studio.overlap_share)")]
    kappa = "not defined" if found.kappa is None else f"{found.kappa:.2f}"
    share = 0.0 if found.verdict_share is None else found.verdict_share
    lines = [
        _line("Agreement", f"{found.samples} samples with more than one review"),
        _line("  same verdict", f"{share:.0%} of {found.pairs} pairs, kappa {kappa}"),
    ]
    if found.placed_pairs:
        apart = [f"{found.same_place} of {found.placed_pairs} pairs"]
        if found.distance_px is not None:
            apart.append(f"{found.distance_px:.1f} px apart (median)")
        if found.iou is not None:
            apart.append(f"IoU {found.iou:.2f} (median)")
        lines.append(_line("  same place", ", ".join(apart)))
    return lines


def _line(name: str, value: object) -> str:
    return f"{name:<25}{value}"
