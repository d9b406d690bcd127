"""What is painted over is gone, whatever lies under it; settings that do not fit are refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipeline.cli.app import main
from pipeline.config import LabelStudioConfig, load_config
from pipeline.pictures import MASK_COLOUR, covered
from schemas.errors import ConfigError
from schemas.geometry import Box

corner = st.floats(0, 30, allow_nan=False)


@given(x=corner, y=corner, width=st.floats(0.01, 30), height=st.floats(0.01, 30))
def test_every_pixel_that_a_mask_touches_is_covered_and_no_other(
    x: float, y: float, width: float, height: float
) -> None:
    image = Image.new("RGB", (40, 40), (200, 10, 10))
    box = Box(x, y, x + width, y + height)
    result = covered(image, (box,))
    for column in range(40):
        for row in range(40):
            touched = column < box.x2 and column + 1 > box.x1 and row < box.y2 and row + 1 > box.y1
            seen = result.getpixel((column, row))
            assert seen == (MASK_COLOUR if touched else (200, 10, 10))
    assert image.getpixel((0, 0)) == (200, 10, 10), "the original picture is untouched"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"images": "s3", "images_prefix": "/srv/copias"}, "begin with s3://"),
        ({"images": "local"}, "needs images_root"),
        ({"images": "local", "images_root": "/srv", "images_prefix": "/srv"}, "below images_root"),
        ({"images": "local", "images_root": "/srv", "images_prefix": "/otra"}, "below images_root"),
        ({"budget": 0}, "greater than or equal to 1"),
        ({"guide": "es-CL"}, "es-AR"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        LabelStudioConfig.model_validate(settings)


def test_the_job_file_says_what_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(
        "[input]\nshards = ['a.tar']\n[output]\ndataset = 'd'\n[label_studio]\nimages = 'local'\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigError, match="needs images_root"):
        load_config(path)


def test_the_guide_is_written_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "guia.html"
    with pytest.raises(SystemExit) as caught:
        main(["review", "guide", "--variant", "es-AR", "--out", str(out)])
    assert caught.value.code in (0, None)
    assert "Vos decís" in out.read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        main(["review", "guide"])
    assert "Usted dice" in capsys.readouterr().out
