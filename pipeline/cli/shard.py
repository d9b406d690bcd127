"""`pantalla shard`: a folder of screenshots into tars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.options import AsJson, RequesterPays

if TYPE_CHECKING:
    from transforms.shards.tar_series import WrittenTar


def shard(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="A folder of images, nested or not; or s3://...")
    ],
    destination: Annotated[
        str, typer.Argument(metavar="DEST", help="Where the tars go: a folder or s3://...")
    ],
    size: Annotated[
        str, typer.Option("--size", help="Bytes that no tar exceeds: 1GB, 500MB, 2GiB.")
    ] = "1GB",
    s3_endpoint: Annotated[
        str | None, typer.Option("--s3-endpoint", help="S3 server of DEST, if not AWS.")
    ] = None,
    input_s3_endpoint: Annotated[
        str | None, typer.Option("--input-s3-endpoint", help="S3 server of SRC, if another one.")
    ] = None,
    requester_pays: RequesterPays = False,
    *,
    json: AsJson = False,
) -> None:
    """Pack a folder into tars of a given size; names, bytes and sidecars stay as they are.

    Nothing is overwritten. Done again, it adds what a killed pack left out.
    """
    from pipeline.pack import pack, parse_size
    from pipeline.pack_text import packed_json, packed_text
    from transforms.storage import S3Access

    source_s3 = S3Access(input_s3_endpoint or s3_endpoint, requester_pays)
    packed = pack(
        source,
        destination,
        parse_size(size),
        source_s3=source_s3,
        destination_s3=s3_endpoint,
        on_tar=_say,
    )
    typer.echo(packed_json(packed) if json else packed_text(packed))


def _say(tar: WrittenTar) -> None:
    done = "was there" if tar.was_there else "written"
    typer.echo(f"{tar.uri}  {tar.byte_size:,} bytes, {tar.files:,} files, {done}", err=True)
