"""Does the verdict fit what is drawn? Nothing on the server ties them together."""

from dataclasses import replace
from typing import Any

import pytest
from review_cases import GROUNDING

from label_studio.interface import BOX, INSTRUCTION, ROLE, TEXT, VERDICT
from label_studio.pull_review import ExportedAnnotation, read_review
from label_studio.tasks import prediction
from schemas.codes import QueryKind, Role, SampleStatus
from schemas.geometry import Box, Point
from schemas.records import Item
from schemas.review import ReviewSample
from schemas.reviews import BLOCKING, NO_VERDICT, AskedSample, Review, ReviewFlag

ABSENT = replace(GROUNDING, status=SampleStatus.ABSENT, items=())
UNUSABLE = replace(GROUNDING, status=SampleStatus.UNPARSEABLE, items=())
ALL = replace(
    GROUNDING,
    kind=QueryKind.LOCALIZATION,
    items=(
        Item(box=Box(0, 0, 100, 50), role=Role.BUTTON, label="Uno"),
        Item(box=Box(200, 0, 300, 50), role=Role.LINK),
    ),
)


def asked(sample: ReviewSample) -> AskedSample:
    return AskedSample(sample.sample_id, sample.kind, sample.status, sample.items, sample.size)


def drawn(sample: ReviewSample) -> list[dict[str, Any]]:
    """The model's regions as a browser sends them back untouched."""
    return [{**region, "origin": "prediction"} for region in prediction(sample).result]


def moved(region: dict[str, Any], dx: float = 5.0) -> dict[str, Any]:
    value = {**region["value"], "x": region["value"]["x"] + dx}
    return {**region, "origin": "prediction-changed", "value": value}


def choice(*codes: str, control: str = VERDICT) -> dict[str, Any]:
    return {"from_name": control, "type": "choices", "value": {"choices": list(codes)}}


def new_box(x: float, y: float, role: str = "button") -> dict[str, Any]:
    value = {"x": x, "y": y, "width": 10, "height": 10, "rectanglelabels": [role]}
    return {
        "id": f"nueva-{x}",
        "from_name": BOX,
        "type": "rectanglelabels",
        "origin": "manual",
        "value": value,
    }


def fix(text: str) -> dict[str, Any]:
    return {"from_name": INSTRUCTION, "type": "textarea", "value": {"text": [text]}}


def read(sample: ReviewSample, result: Any, *, skipped: bool = False) -> Review:
    annotation = ExportedAnnotation.model_validate(
        {
            "id": 7,
            "result": result,
            "was_cancelled": skipped,
            "completed_by": 3,
            "created_at": "2026-12-01T10:00:00Z",
            "updated_at": "2026-12-01T10:05:00Z",
            "lead_time": 4.5,
            "unique_id": "u-7",
        }
    )
    return read_review(21, annotation, asked(sample))


def blocked(review: Review) -> bool:
    return bool(BLOCKING.intersection(review.flags))


def test_correct_vouches_for_the_place_of_the_model() -> None:
    review = read(GROUNDING, [choice("correct"), *drawn(GROUNDING)])
    item = GROUNDING.items[0]
    assert review.verdict == "correct"
    assert review.target is not None
    assert (review.target.box, review.point, review.role) == (item.box, item.point, Role.BUTTON)
    assert (review.target.origin, review.point_origin) == ("prediction", "prediction")
    assert review.flags == ()
    assert (review.ref.task_id, review.ref.reviewer, review.ref.lead_time_s) == (21, "3", 4.5)


def test_corrected_vouches_for_the_moved_place() -> None:
    box, point = drawn(GROUNDING)
    review = read(GROUNDING, [choice("corrected"), moved(box), moved(point)])
    assert review.target is not None
    assert review.target.box.corners == pytest.approx((320, 160, 448, 240))
    assert review.point == Point(384, 200)
    assert (review.target.origin, review.flags) == ("prediction-changed", ())


def test_a_new_box_beside_the_forgotten_one_of_the_model_is_the_one_meant() -> None:
    review = read(GROUNDING, [choice("corrected"), *drawn(GROUNDING), new_box(70, 70)])
    assert review.target is not None
    assert review.target.box.corners == pytest.approx((896, 560, 1024, 640))
    assert review.point is None, "the model's point lies elsewhere"
    assert review.flags == (ReviewFlag.MODEL_BOX_LEFT, ReviewFlag.MODEL_POINT_LEFT)
    assert not blocked(review)


def test_two_new_boxes_are_for_a_person_to_settle() -> None:
    review = read(GROUNDING, [choice("corrected"), new_box(70, 70), new_box(10, 70)])
    assert review.target is None
    assert ReviewFlag.SEVERAL_BOXES in review.flags
    assert blocked(review)


@pytest.mark.parametrize(
    ("sample", "result", "flag"),
    [
        (GROUNDING, [choice("corrected"), *drawn(GROUNDING)], ReviewFlag.CORRECTED_UNCHANGED),
        (GROUNDING, [choice("corrected")], ReviewFlag.CORRECTED_WITHOUT_PLACE),
        (
            GROUNDING,
            [choice("correct"), moved(drawn(GROUNDING)[0]), drawn(GROUNDING)[1]],
            ReviewFlag.CORRECT_MOVED,
        ),
        (GROUNDING, [choice("correct"), drawn(GROUNDING)[1]], ReviewFlag.CORRECT_MOVED),
        (UNUSABLE, [choice("correct")], ReviewFlag.CORRECT_WITHOUT_PLACE),
        (ABSENT, [choice("correct"), new_box(10, 10)], ReviewFlag.CORRECT_MOVED),
        (GROUNDING, [choice("absent"), new_box(10, 10)], ReviewFlag.ABSENT_WITH_BOX),
        (GROUNDING, [choice("absent"), moved(drawn(GROUNDING)[0])], ReviewFlag.ABSENT_WITH_BOX),
        (GROUNDING, [*drawn(GROUNDING)], ReviewFlag.NO_VERDICT),
        (GROUNDING, [choice("correct", "absent")], ReviewFlag.SEVERAL_VERDICTS),
        (GROUNDING, [choice("Correcta"), *drawn(GROUNDING)], ReviewFlag.UNKNOWN_VERDICT),
        (ALL, [choice("corrected"), *drawn(ALL)], ReviewFlag.CORRECTED_UNCHANGED),
        (ALL, [choice("correct"), *drawn(ALL), new_box(50, 50)], ReviewFlag.CORRECT_MOVED),
        (ALL, [choice("correct"), drawn(ALL)[0]], ReviewFlag.CORRECT_MOVED),
        (GROUNDING, {"not": "a list"}, ReviewFlag.UNREADABLE),
        (GROUNDING, None, ReviewFlag.UNREADABLE),
    ],
)
def test_what_does_not_fit_is_flagged_and_vouches_for_nothing(
    sample: ReviewSample, result: Any, flag: ReviewFlag
) -> None:
    review = read(sample, result)
    assert flag in review.flags
    assert blocked(review)


@pytest.mark.parametrize(
    "result",
    [
        [choice("corrected"), *drawn(GROUNDING), fix("Guardar todo")],
        [choice("corrected"), *drawn(GROUNDING), choice("link", control=ROLE)],
    ],
)
def test_a_corrected_instruction_or_class_is_a_correction(result: list[Any]) -> None:
    assert read(GROUNDING, result).flags == ()


def test_a_hand_that_shook_by_less_than_half_a_pixel_moved_nothing() -> None:
    box, point = drawn(GROUNDING)
    assert read(GROUNDING, [choice("correct"), moved(box, dx=0.03), point]).flags == ()


def test_absent_with_the_box_of_the_model_left_is_absent() -> None:
    review = read(GROUNDING, [choice("absent"), *drawn(GROUNDING)])
    assert (review.verdict, review.target, review.point) == ("absent", None, None)
    assert review.flags == (ReviewFlag.MODEL_BOX_LEFT,)
    assert not blocked(review)


def test_correct_of_an_answer_that_said_absent_needs_no_place() -> None:
    review = read(ABSENT, [choice("correct")])
    assert (review.verdict, review.target, review.flags) == ("correct", None, ())


@pytest.mark.parametrize("verdict", ["ambiguous", "illegible", "personal_data"])
def test_a_verdict_that_vouches_for_nothing_promotes_no_place(verdict: str) -> None:
    review = read(GROUNDING, [choice(verdict), *drawn(GROUNDING)])
    assert (review.verdict, review.target, review.point, review.flags) == (verdict, None, None, ())
    assert len(review.boxes) == 1


def test_b110_a_skipped_task_promotes_nothing_of_the_model() -> None:
    review = read(GROUNDING, [choice("correct"), *drawn(GROUNDING)], skipped=True)
    assert (review.skipped, review.verdict) == (True, NO_VERDICT)
    assert (review.target, review.point, review.boxes, review.flags) == (None, None, (), ())
    assert review.result is not None
    assert "rectanglelabels" in review.result


def test_b109_an_empty_result_says_that_nothing_is_there() -> None:
    review = read(GROUNDING, [])
    assert (review.verdict, review.flags) == ("absent", (ReviewFlag.EMPTY_RESULT,))
    assert not blocked(review)


def test_origins_are_told_by_geometry_where_the_server_names_none() -> None:
    plain = [{k: v for k, v in r.items() if k != "origin"} for r in drawn(GROUNDING)]
    kept = read(GROUNDING, [choice("correct"), *plain])
    assert [box.origin for box in kept.boxes] == ["prediction"]
    other = read(GROUNDING, [choice("corrected"), {**plain[0], **new_box(70, 70), "origin": None}])
    assert [box.origin for box in other.boxes] == ["manual"]


def test_all_boxes_of_a_localization_come_back_with_class_and_text() -> None:
    first, text_of_first, second = drawn(ALL)
    second = {**second, "value": {**second["value"], "rectanglelabels": ["heading"]}}
    text = {"id": second["id"], "from_name": TEXT, "type": "textarea", "value": {"text": "Título"}}
    review = read(
        ALL, [choice("corrected"), first, text_of_first, second, text, new_box(50, 50, "element")]
    )
    assert [(box.role, box.text) for box in review.boxes] == [
        (Role.BUTTON, "Uno"),
        (Role.HEADING, "Título"),
        (None, None),
    ]
    assert (review.target, review.flags) == (None, ())
