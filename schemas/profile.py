"""The model profile: everything that is particular to one model family, as data.

A profile is a TOML file. Code never branches on a profile's name: adding a model is adding a file.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from schemas.codes import QueryKind
from schemas.geometry import FrameKind
from schemas.resize import AnyResizeRule

AnswerFormat = Literal[
    "click_action",
    "click_text",
    "click_xy",
    "point_or_refusal",
    "point_text",
    "qwen_json",
    "ref_boxes",
    "tagged",
    "tool_call",
    "ui_tars",
]
"""Names of the parsers in `transforms.parse`; a test checks that each has one."""

ProbeScreens = Literal["nano", "spanish"]
"""Families of screens that the probe can draw; a test checks that each has a maker."""

Scalar = bool | int | float | str


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Checkpoint(_Strict):
    """One published checkpoint of the family, with the terms it comes under."""

    id: str
    revision: str | None = None
    licence: str
    commercial_use: bool | None = None
    source: str


class Sampling(_Strict):
    """Sampling settings of one kind of request; `temperature` 0 is greedy decoding."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: int = 0
    presence_penalty: float = 0.0


class TaskSpec(_Strict):
    """How one kind of query is put to the model and how its answer is read.

    Attributes:
        prompt_version: changes whenever `prompt` or `system` changes; part of every sample id.
        prompt: user text; `{target}` is the instruction, `{schema}` the Python repr of
            `json_schema` (the form some families were trained on), `{width}` and `{height}` the
            size of the shown image in pixels.
        system: system text, in which `{width}` and `{height}` are filled too.
        image_first: whether the image stands before the text, as most families learnt it.
        answer_format: name of a parser in `transforms.parse`.
        json_schema: grammar the engine enforces, or none.
        max_tokens: limit of one answer.
        keep_special_tokens: whether the answer keeps tokens such as `<|box_start|>`, which engines
            leave out by default.
        absence: how the model says that the target is not there, for people to read; None when
            the family has no such form.
    """

    prompt_version: str
    prompt: str
    system: str | None = None
    image_first: bool = True
    answer_format: AnswerFormat
    json_schema: dict[str, JsonValue] | None = None
    structured: bool = False
    max_tokens: Annotated[int, Field(ge=1)]
    absence: str | None = None
    keep_special_tokens: bool = False

    @model_validator(mode="after")
    def _schema_present(self) -> TaskSpec:
        if self.json_schema is None and (self.structured or "{schema}" in self.prompt):
            raise ValueError("structured output or {schema} in the prompt needs json_schema")
        return self


class ModelProfile(_Strict):
    """A model family as Pantalla sees it.

    Attributes:
        name: the profile's name in the config.
        checkpoints: published checkpoints; `checkpoints[0]` is the default model.
        frame: the convention of the answers' coordinates; None = unknown, refused at start
            unless the job states it.
        resize: the processor's resize rule; None = the image is shown as it is.
        probe_screens: which screens the probe draws: pages with Spanish buttons, or those of a
            toy model that knows nothing else.
        tasks: one spec per query kind; a kind that is missing cannot be asked.
        greedy: sampling of single answers; `vote`: sampling of the k answers that are compared.
        chat_template_kwargs: for example the thinking switch.
        engine: vLLM engine arguments; the job's own override them.
        sources: fact -> where it was read.
        warning: shown at every start.
    """

    name: str
    description: str
    checkpoints: tuple[Checkpoint, ...] = Field(min_length=1)
    frame: FrameKind | None = None
    resize: AnyResizeRule | None = None
    probe_screens: ProbeScreens = "spanish"
    tasks: dict[QueryKind, TaskSpec] = Field(min_length=1)
    greedy: Sampling = Sampling()
    vote: Sampling = Sampling(temperature=0.7, top_p=0.95)
    chat_template_kwargs: dict[str, Scalar] = Field(default_factory=dict)
    engine: dict[str, JsonValue] = Field(default_factory=dict)
    sources: dict[str, str] = Field(min_length=1)
    warning: str | None = None

    @model_validator(mode="after")
    def _thinks_or_is_bound(self) -> ModelProfile:
        """Refuse a grammar with thinking on: the grammar forbids the thought without a word."""
        on = [k for k in self.chat_template_kwargs if "think" in k and self.chat_template_kwargs[k]]
        bound = sorted(kind.value for kind, task in self.tasks.items() if task.structured)
        if on and bound:
            raise ValueError(
                f"chat_template_kwargs.{on[0]} is on, but tasks.{bound[0]} has structured = true, "
                "and a grammar leaves no room to think: set one of them to false"
            )
        return self

    def notices(self, checkpoint: str | None = None) -> tuple[str, ...]:
        """What a user must know before using `checkpoint` (None = the default one).

        The profile's warning, and a sentence of its own where the licence forbids commercial use
        or says nothing about it.
        """
        wanted = checkpoint or self.checkpoints[0].id
        known = next((found for found in self.checkpoints if found.id == wanted), None)
        said = [self.warning.strip()] if self.warning else []
        if known is not None and known.commercial_use is False:
            said.append(f"NO COMMERCIAL USE: {known.id} is under the licence {known.licence!r}.")
        if known is not None and known.commercial_use is None:
            said.append(f"Not known whether {known.id} may be used commercially: {known.source}.")
        return tuple(said)
