"""The job's configuration: one strict TOML file, `--set` overrides, defaults written once here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from label_studio.words import Variant
from schemas.geometry import FrameKind
from transforms.storage import S3Access, S3Address

_Text = Annotated[str, Field(min_length=1)]
_Url = Annotated[str, Field(pattern="^https?://.")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BoxesConfig(_Section):
    """How the boxes of sidecars are meant, where a sidecar does not say itself.

    Attributes:
        format: corners (`xyxy`), or left, top, width, height (`xywh`).
        frame: pixels of the image, CSS pixels (the sidecar states the device pixel ratio), or
            shares of the image's sides, of 1, 1000 or 100.
    """

    format: Literal["xyxy", "xywh"] = "xyxy"
    frame: Literal["px", "css", "unit", "norm_1000", "percent"] = "px"


class InputConfig(_Section):
    """What is read.

    Attributes:
        shards: paths, `s3://` URIs or glob patterns of shards; folders end in `/`. What exists
            under exactly that name wins; in a pattern, `[[]`, `[*]` and `[?]` stand for the signs
            themselves.
        queries: a JSON Lines or CSV file of queries, or none.
        enumerate_elements: ask "all elements" of every screen; `auto` = only of screens that
            have no query of their own.
        boxes: how the boxes of sidecars are meant; default: `bbox_px`, corners in pixels.
        unit_screens: screens in a unit, the atom of commit and resume.
        lot_units: units handed to one worker at once; default: 64, and 256 where the job's own
            process does them all.
        max_pixels: limit of one image, width times height, before it is decoded.
        max_side: limit of its longer side, pixels.
        max_aspect: limit of its longer side over the shorter one.
        max_bytes: limit of its file.
        max_png_chunks: limit of the chunks of a PNG.
        background: page colour, `#rrggbb`, that is seen through transparent pixels.
        near_duplicates: what is done with screens that look like an earlier one: nothing; they are
            marked; left out where they look like one that is kept; or of all that are linked by
            likeness the first is kept.
        near_distance: bits of 256 in which the hashes of two screens that look alike may differ.
        s3_endpoint: address of an S3-compatible server; without it, Amazon S3.
        s3_requester_pays: agree to pay for requests to buckets whose owner does not.
    """

    shards: tuple[_Text, ...] = Field(min_length=1)
    queries: _Text | None = None
    enumerate_elements: Literal["auto", "always", "never"] = "auto"
    boxes: BoxesConfig | None = None
    unit_screens: Annotated[int, Field(ge=1, le=4096)] = 64
    lot_units: Annotated[int, Field(ge=1)] | None = None
    max_pixels: Annotated[int, Field(ge=1024)] = 200_000_000
    max_side: Annotated[int, Field(ge=32)] = 65_535
    max_aspect: Annotated[float, Field(ge=1)] = 200.0
    max_bytes: Annotated[int, Field(ge=1024)] = 2**28
    max_png_chunks: Annotated[int, Field(ge=3)] = 100_000
    background: Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$")] = "#ffffff"
    near_duplicates: Literal["off", "mark", "skip", "keep_one"] = "off"
    near_distance: Annotated[int, Field(ge=0, le=31)] = 10
    s3_endpoint: str | None = None
    s3_requester_pays: bool = False

    @property
    def s3(self) -> S3Address:
        """How the shards are reached, where they are on S3."""
        return (
            S3Access(self.s3_endpoint, requester_pays=True)
            if self.s3_requester_pays
            else (self.s3_endpoint)
        )


class ModelConfig(_Section):
    """Which model answers.

    Attributes:
        profile: name of a bundled profile, or the path of a profile file.
        checkpoint: local folder or model id; default: the profile's first checkpoint.
        frame: coordinate convention, needed where the profile does not know it.
        engine: vLLM engine arguments, over the profile's own.
        probe: the check of the model's coordinates at engine start. `require` refuses a model of
            which it cannot tell, `warn` runs it all the same, `off` asks nothing; a model that
            contradicts its profile is stopped by the first two.
    """

    profile: str = "nano"
    checkpoint: str | None = None
    revision: str | None = None
    frame: FrameKind | None = None
    probe: Literal["require", "warn", "off"] = "require"
    engine: dict[str, JsonValue] = Field(default_factory=dict)


class EngineConfig(_Section):
    """How much trouble with the engine is borne. None of it shapes rows.

    Attributes:
        request_timeout_seconds: a request that is not answered within this time is rejected.
        hang_seconds: an engine with work but no sign of life for this long counts as dead.
        start_seconds: longest start of an engine; a download of its weights is part of it.
        recycle_answers: an engine is started anew after so many answers, against memory that it
            loses; default: never.
        max_rebuilds: how often in a row a dead engine is rebuilt; to find the one request among
            256 that kills it takes nine.
    """

    request_timeout_seconds: Annotated[float, Field(gt=0)] = 900.0
    hang_seconds: Annotated[float, Field(gt=0)] = 300.0
    start_seconds: Annotated[float, Field(gt=0)] = 3600.0
    max_rebuilds: Annotated[int, Field(ge=0)] = 10
    recycle_answers: Annotated[int, Field(ge=1)] | None = None


class RunConfig(_Section):
    """How a run behaves towards whoever started it. None of it shapes rows.

    Attributes:
        grace_seconds: after SIGTERM or SIGINT, the time in which units in work may still be
            finished; what is not finished then is done again by the next run.
        heartbeat_seconds: pace of the heartbeat file.
        heartbeat: where it goes; default: `_run/heartbeat.json` in the dataset.
    """

    grace_seconds: Annotated[float, Field(ge=0)] = 30.0
    heartbeat_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 10.0
    heartbeat: _Text | None = None


class SamplingConfig(_Section):
    """How often a grounding query is asked.

    Attributes:
        k: answers per grounding query; 1 is greedy and gives no agreement to measure.
        temperature: of the k answers; default: the profile's.
        seed: part of every request's seed.
    """

    k: Annotated[int, Field(ge=1, le=64)] = 5
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    seed: int = 0


class DecisionConfig(_Section):
    """What is accepted without a person.

    Attributes:
        threshold: rows at or above this probability are accepted.
        audit_share: share of the accepted that is reviewed all the same, drawn by sample id.
        unusable: where answers without geometry go.
    """

    threshold: Annotated[float, Field(ge=0, le=1)] = 0.8
    audit_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    unusable: Literal["review", "reject"] = "review"


class OutputConfig(_Section):
    """Where the dataset goes: a local folder or `s3://bucket/prefix`."""

    dataset: _Text
    s3_endpoint: str | None = None


class LimitsConfig(_Section):
    """When a finished job is not a good one.

    Attributes:
        max_reject_share: exit code 1 when more of the members or queries than this are rejected.
    """

    max_reject_share: Annotated[float, Field(ge=0, le=1)] = 0.05


class LabelStudioConfig(_Section):
    """Where people review. Without `url` nothing is pushed and nothing is pending.

    Attributes:
        url: base address of the server, http or https.
        project: title of the project, found or made.
        token_env: name of the environment variable that holds the API token.
        push: whether `run` pushes at its end; `pantalla push` does it at any time.
        guide: whose Spanish the interface and the guide speak; `es` is neutral and says usted.
        budget: most open tasks on the server; what is beyond waits, and a later push brings it.
        overlap_share: share of the samples, drawn by their id, that `overlap` people answer.
        overlap: how many that is.
        images: how screenshots reach the reviewer. `upload` sends them to the server; `s3`: the
            server reads a private bucket and passes them on; `presigned`: browsers load them from
            the bucket (it needs CORS); `local`: the server reads files below `images_root`.
        images_prefix: folder or `s3://bucket/prefix` where pictures that are no file of their own
            (of a tar, masked, turned) are copied for the server; without it they are uploaded.
        images_root: the server's document root for local files.
        images_endpoint: S3 endpoint as the server reaches it, where it is not Amazon S3.
        images_region: S3 region of the bucket.
        masks: `sidecar`: the boxes that a sidecar lists under `masks` are painted over before
            anybody sees the screen, and a screen that does not say what to hide is not pushed.
    """

    url: _Url | None = None
    project: Annotated[str, Field(min_length=3, max_length=50)] = "Pantalla: revisión"
    token_env: str = "LABEL_STUDIO_API_KEY"  # noqa: S105 - the name of a variable, not a secret
    push: bool = True
    guide: Variant = Variant.NEUTRAL
    budget: Annotated[int, Field(ge=1)] | None = None
    overlap_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    overlap: Annotated[int, Field(ge=2, le=9)] = 2
    images: Literal["upload", "s3", "presigned", "local"] = "upload"
    images_prefix: _Text | None = None
    images_root: _Text | None = None
    images_endpoint: str | None = None
    images_region: str | None = None
    masks: Literal["none", "sidecar"] = "none"

    @model_validator(mode="after")
    def _images_fit(self) -> Self:
        """What one way of serving pictures needs is there.

        Raises:
            ValueError: saying which setting is missing, or does not fit.
        """
        prefix = self.images_prefix
        if self.images in ("s3", "presigned") and prefix and not prefix.startswith("s3://"):
            raise ValueError(f'images = "{self.images}" needs images_prefix to begin with s3://')
        if self.images == "local":
            _check_local(self.images_root, prefix)
        return self


def _check_local(root: str | None, prefix: str | None) -> None:
    if root is None:
        raise ValueError(
            'images = "local" needs images_root, the folder that the server was given as '
            "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT"
        )
    if prefix and Path(root).resolve() not in Path(prefix).resolve().parents:
        raise ValueError("images_prefix must be a folder below images_root, not the root itself")


class CostConfig(_Section):
    """Prices for the plan's estimate and the report; none are invented.

    Attributes:
        machine_hour: price of an hour of one machine.
        tokens_per_second: tokens in and out that the machine's engine does, for the estimate of a
            job that was never run.
    """

    machine_hour: Annotated[float, Field(ge=0)] | None = None
    tokens_per_second: Annotated[float, Field(gt=0)] | None = None
    currency: str = "USD"


class JobConfig(_Section):
    """The whole job."""

    input: InputConfig
    output: OutputConfig
    model: ModelConfig = ModelConfig()
    engine: EngineConfig = EngineConfig()
    run: RunConfig = RunConfig()
    sampling: SamplingConfig = SamplingConfig()
    decision: DecisionConfig = DecisionConfig()
    limits: LimitsConfig = LimitsConfig()
    label_studio: LabelStudioConfig = LabelStudioConfig()
    cost: CostConfig = CostConfig()


def load_config(path: Path | None, overrides: tuple[str, ...] = ()) -> JobConfig:
    """Read a job file and apply `--set key=value` overrides.

    Args:
        path: a TOML file, or None to build the job from overrides alone.
        overrides: `section.key=value` texts; values are TOML, or plain text where they are not.

    Raises:
        ConfigError: naming the file, the key and its value; unknown keys name the nearest one.
    """
    from pipeline.config_reader import read_config

    return read_config(path, overrides)
