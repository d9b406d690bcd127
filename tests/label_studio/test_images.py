"""Pictures are recognised by their bytes and found again by their screen."""

import pytest

from label_studio.assets import stored_pictures
from label_studio.images import UnshowableImageError, image_kind


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n...", ("png", "image/png")),
        (b"\xff\xd8\xff\xe0...", ("jpg", "image/jpeg")),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", ("webp", "image/webp")),
        (b"GIF89a...", ("gif", "image/gif")),
    ],
)
def test_kinds_that_browsers_show(head: bytes, kind: tuple[str, str]) -> None:
    assert image_kind(head) == kind


@pytest.mark.parametrize("head", [b"", b"BM6\x00", b"II*\x00", b"RIFF\x10\x00\x00\x00WAVE"])
def test_other_kinds_are_refused(head: bytes) -> None:
    with pytest.raises(UnshowableImageError):
        image_kind(head)


def test_stored_names_lead_back_to_screens() -> None:
    uploads = {
        "0a1b2c3d-beef01.png": "/data/upload/2/0a1b2c3d-beef01.png",
        "ffffffff-beef01.png": "/data/upload/2/ffffffff-beef01.png",
        "0a1b2c3d-cafe02.jpg": "/data/upload/2/0a1b2c3d-cafe02.jpg",
        "de-otra-mano.png": "/data/upload/2/de-otra-mano.png",
    }
    assert stored_pictures(uploads) == {
        "beef01": "/data/upload/2/0a1b2c3d-beef01.png",
        "cafe02": "/data/upload/2/0a1b2c3d-cafe02.jpg",
    }
