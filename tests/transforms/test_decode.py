"""Decoding: the right pixels, upright, or a clear refusal."""

import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_bytes import encoded, noise, png_of
from PIL import Image, ImageFile

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.geometry import Size
from transforms.decode import DecodedImage, ImageSettings, decode_image

LIMIT = ImageSettings(max_pixels=10**7)
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def plain(color: tuple[int, ...] = RED, mode: str = "RGB") -> Image.Image:
    return Image.new(mode, (20, 16), color)


def decoded(data: bytes) -> DecodedImage:
    return decode_image(data, LIMIT)


def refusal(data: bytes, settings: ImageSettings = LIMIT) -> MemberRejected:
    with pytest.raises(MemberRejected) as caught:
        decode_image(data, settings)
    return caught.value


EXIF_6 = Image.Exif()
EXIF_6[0x0112] = 6
FILES = {
    "png": encoded(noise(), "PNG"),
    "jpeg": encoded(noise(), "JPEG"),
    "jpeg_progressive": encoded(noise(), "JPEG", progressive=True),
    "jpeg_exif": encoded(noise(), "JPEG", exif=EXIF_6.tobytes()),
    "webp": encoded(noise(), "WEBP"),
    "webp_lossless": encoded(noise(), "WEBP", lossless=True),
    "gif": encoded(noise(), "GIF"),
    "bmp": encoded(noise(), "BMP"),
    "avif": encoded(noise(), "AVIF"),
    "tiff": encoded(noise(), "TIFF"),
    "tiff_lzw": encoded(noise(), "TIFF", compression="tiff_lzw"),
}


@pytest.mark.parametrize("name", ["png", "webp_lossless", "bmp", "tiff", "tiff_lzw"])
def test_lossless_formats_give_the_pixels_that_were_saved(name: str) -> None:
    result = decoded(FILES[name])
    assert result.image.tobytes() == noise().tobytes()
    assert (result.size, result.image.mode, result.flags) == (Size(40, 24), "RGB", ())
    assert (result.image_mode, result.orientation) == ("RGB", 1)


@pytest.mark.parametrize(
    ("data", "image_format"),
    [
        (FILES["jpeg"], "JPEG"),
        (FILES["webp"], "WEBP"),
        (FILES["png"], "PNG"),
        (FILES["gif"], "GIF"),
        (FILES["avif"], "AVIF"),
    ],
)
def test_the_format_is_told_by_the_bytes(data: bytes, image_format: str) -> None:
    assert decoded(data).image_format == image_format


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_a_file_cut_at_any_byte_is_refused_and_never_filled(name: str, data: st.DataObject) -> None:
    whole = FILES[name]
    cut = data.draw(st.integers(0, len(whole) - 1))
    reason = refusal(whole[:cut]).reason
    if name.startswith(("png", "jpeg", "webp", "bmp")):
        assert reason == (RejectReason.IMAGE_TRUNCATED if cut else RejectReason.IMAGE_EMPTY)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is False


@pytest.mark.parametrize("name", ["png", "jpeg", "jpeg_progressive", "jpeg_exif", "webp"])
def test_the_last_bytes_matter_too(name: str) -> None:
    for missing in range(1, 16):
        assert refusal(FILES[name][:-missing]).reason == RejectReason.IMAGE_TRUNCATED


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_damaged_bytes_give_an_image_or_a_refusal_and_nothing_else(
    name: str, data: st.DataObject
) -> None:
    damaged = bytearray(FILES[name])
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert decode_image(bytes(damaged), ImageSettings(max_pixels=10**6)).image.mode == "RGB"
    except MemberRejected as error:
        assert error.reason in set(RejectReason)


def test_bytes_after_the_end_are_allowed() -> None:
    for name in ("png", "jpeg", "webp", "gif", "avif", "bmp", "tiff"):
        assert decoded(FILES[name] + b"\0\0mas").size == Size(40, 24)


def test_a_thumbnail_inside_does_not_hide_a_cut() -> None:
    exif = b"Exif\0\0" + encoded(plain(), "JPEG")  # ends in an end mark of its own
    whole = encoded(noise(200, 200), "JPEG", exif=exif)
    assert decoded(whole).size == Size(200, 200)
    assert refusal(whole[: len(whole) // 2]).reason == RejectReason.IMAGE_TRUNCATED


def test_a_wrong_png_checksum_is_corrupt() -> None:
    damaged = bytearray(FILES["png"])
    end_of_pixels = damaged.index(b"IEND") - 5
    damaged[end_of_pixels] ^= 0x01
    assert refusal(bytes(damaged)).reason == RejectReason.IMAGE_CORRUPT


@pytest.mark.parametrize(
    ("data", "reason", "said"),
    [
        (b"", RejectReason.IMAGE_EMPTY, "0 bytes"),
        (b"<html><body>403</body></html>", RejectReason.IMAGE_UNSUPPORTED, "HTML"),
        (b"<?xml version='1.0'?><svg></svg>", RejectReason.IMAGE_UNSUPPORTED, "SVG"),
        (b"\0\0\0\x18ftypheic" + bytes(99), RejectReason.IMAGE_UNSUPPORTED, "HEIC"),
        (b"\0\0\0\x18ftypmif1" + bytes(99), RejectReason.IMAGE_UNSUPPORTED, "HEIC"),
        (b"%PDF-1.7 ...", RejectReason.IMAGE_UNSUPPORTED, "PDF"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", RejectReason.IMAGE_UNSUPPORTED, "JPEG XL"),
        (b"iVBORw0KGgoAAAANSUhEUg", RejectReason.IMAGE_UNSUPPORTED, "base64"),
        (bytes(5000), RejectReason.IMAGE_UNSUPPORTED, "zero bytes"),
        (b"\x01\x02\x03\x04....", RejectReason.IMAGE_UNSUPPORTED, "01 02 03 04"),
    ],
)
def test_what_is_no_image_is_named(data: bytes, reason: RejectReason, said: str) -> None:
    error = refusal(data)
    assert error.reason == reason
    assert said in error.detail


def test_size_limits_are_checked_before_pixels() -> None:
    bomb = png_of(20000, 20000, 8, 2, b"")
    assert refusal(bomb, ImageSettings()).reason == RejectReason.IMAGE_TOO_LARGE
    assert "20000x20000" in refusal(bomb).detail
    below, exact = (ImageSettings(max_pixels=n) for n in (40 * 24 - 1, 40 * 24))
    assert refusal(FILES["png"], below).reason == RejectReason.IMAGE_TOO_LARGE
    assert decode_image(FILES["png"], exact).size == Size(40, 24)


def test_our_limit_applies_and_not_the_one_of_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert decoded(FILES["png"]).size == Size(40, 24)


@pytest.mark.parametrize("size", [(1, 1), (7, 100), (100, 7)])
def test_tiny_images_are_refused(size: tuple[int, int]) -> None:
    error = refusal(encoded(Image.new("RGB", size), "PNG"))
    assert error.reason == RejectReason.IMAGE_TOO_SMALL


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("image_format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_is_applied(orientation: int, image_format: str) -> None:
    """A red block lies at the top left of the upright picture, whatever the tag."""
    upright = Image.new("RGB", (48, 32), WHITE)
    upright.paste(RED, (0, 0, 16, 16))
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = upright.transpose(undo[orientation]) if orientation in undo else upright
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95} if image_format in {"JPEG", "WEBP"} else {}
    result = decoded(encoded(stored, image_format, exif=exif.tobytes(), **options))
    assert (result.size, result.orientation) == (Size(48, 32), orientation)
    red, white = result.image.getpixel((4, 4)), result.image.getpixel((40, 28))
    assert red[0] > 230 > 25 > red[1]  # type: ignore[index] # an RGB pixel is a tuple
    assert min(white) > 230  # type: ignore[arg-type] # likewise


@pytest.mark.parametrize("image_format", ["JPEG", "WEBP"])
def test_orientation_in_xmp_alone_is_not_followed(image_format: str) -> None:
    """Browsers do not, and the reviewer must see the picture as the model did."""
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/" tiff:Orientation="6"></x:xmpmeta>'
    result = decoded(encoded(plain(), image_format, xmp=xmp))
    assert (result.orientation, result.size) == (1, Size(20, 16))


def test_a_senseless_orientation_is_none() -> None:
    exif = Image.Exif()
    exif[0x0112] = 77
    result = decoded(encoded(plain(), "JPEG", exif=exif.tobytes()))
    assert (result.orientation, result.size) == (1, Size(20, 16))


def test_damaged_exif_costs_no_image() -> None:
    result = decoded(encoded(plain(), "PNG", exif=b"Exif\0\0II"))
    assert result.size == Size(20, 16)
    assert result.flags == ("exif_unreadable",)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_becomes_white(mode: str) -> None:
    if mode == "P":
        image = Image.new("P", (20, 16), 0)
        image.putpalette([255, 0, 0])
        data = encoded(image, "PNG", transparency=bytes([0]))
    else:
        data = encoded(plain((255, 0, 0, 0), "RGBA").convert(mode), "PNG")
    result = decoded(data)
    assert result.image.getpixel((5, 5)) == WHITE
    assert result.flags == ("alpha_composited",)
    assert result.image_mode == mode


def test_half_transparent_black_is_grey() -> None:
    result = decoded(encoded(plain((0, 0, 0, 128), "RGBA"), "PNG"))
    assert result.image.getpixel((0, 0)) == (127, 127, 127)


def test_opaque_alpha_is_not_worth_a_flag() -> None:
    result = decoded(encoded(plain((9, 8, 7, 255), "RGBA"), "PNG"))
    assert (result.image.getpixel((0, 0)), result.flags) == ((9, 8, 7), ())


def test_16_bit_grey_keeps_its_greys() -> None:
    levels = (0, 16384, 32768, 65535)
    row = b"\0" + b"".join(struct.pack(">H", level) * 2 for level in levels)
    result = decoded(png_of(8, 8, 16, 0, row * 8))
    assert [result.image.getpixel((2 * i, 3)) for i in range(4)] == [
        (0, 0, 0),
        (64, 64, 64),
        (128, 128, 128),
        (255, 255, 255),
    ]
    assert result.flags == ("depth_reduced",)


def test_16_bit_tiff_and_16_bit_colour() -> None:
    grey = Image.fromarray(np.full((10, 10), 32768, dtype=np.uint16))
    result = decoded(encoded(grey, "TIFF"))
    assert (result.image.getpixel((1, 1)), result.flags) == ((128, 128, 128), ("depth_reduced",))
    row = b"\0" + struct.pack(">HHH", 65535, 0, 32768) * 8
    result = decoded(png_of(8, 8, 16, 2, row * 8))
    assert (result.image.getpixel((1, 1)), result.flags) == ((255, 0, 128), ("depth_reduced",))


@pytest.mark.parametrize(("mode", "value"), [("F", 0.5), ("I", 70000)])
def test_pixels_without_a_stated_range_are_refused(mode: str, value: float) -> None:
    error = refusal(encoded(Image.new(mode, (16, 16), value), "TIFF"))
    assert (error.reason, mode in error.detail) == (RejectReason.IMAGE_UNSUPPORTED, True)


def test_cmyk_is_converted_and_says_so() -> None:
    data = encoded(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=95)
    result = decoded(data)
    red, green, blue = result.image.getpixel((4, 4))  # type: ignore[misc] # an RGB pixel
    assert red > 230 > 25 > max(green, blue)
    assert result.flags == ("cmyk_converted",)
    marker = data.index(b"\xff\xee")
    bare = data[:marker] + data[marker + 2 + int.from_bytes(data[marker + 2 : marker + 4]) :]
    assert decoded(bare).flags == ("cmyk_converted", "cmyk_without_marker")


@pytest.mark.parametrize("mode", ["1", "L", "P", "YCbCr"])
def test_other_modes_need_no_flag(mode: str) -> None:
    image_format = "JPEG" if mode == "YCbCr" else "PNG"
    image = plain(WHITE).convert(mode)
    result = decoded(encoded(image, image_format))
    assert (result.image.mode, result.flags) == ("RGB", ())
    assert result.image.getpixel((3, 3)) == WHITE


@pytest.mark.parametrize("image_format", ["GIF", "PNG", "WEBP", "TIFF", "AVIF"])
def test_the_first_frame_of_an_animation_is_used(image_format: str) -> None:
    options: dict[str, object] = {"lossless": True} if image_format == "WEBP" else {}
    data = encoded(
        plain(RED),
        image_format,
        save_all=True,
        append_images=[plain(GREEN), plain(BLUE)],
        **options,
    )
    result = decoded(data)
    red, green, blue = result.image.getpixel((3, 3))  # type: ignore[misc] # an RGB pixel
    assert red > 250 > 5 > max(green, blue)
    assert "first_frame_only" in result.flags
    assert result.frame_count == 3


def test_a_phone_picture_of_two_is_the_jpeg_it_starts_with() -> None:
    data = encoded(plain(RED), "MPO", save_all=True, append_images=[plain(BLUE)])
    result = decoded(data)
    assert (result.image_format, result.frame_count) == ("JPEG", 2)
    assert result.image.getpixel((3, 3))[0] > 200  # type: ignore[index] # an RGB pixel


def test_many_threads_decode_the_same_pixels() -> None:
    start = threading.Barrier(8)

    def work(name: str) -> bytes:
        start.wait()
        return decoded(FILES[name]).image.tobytes()

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, ["png", "webp_lossless", "bmp", "tiff"] * 2))
    assert set(results) == {noise().tobytes()}
