"""Image faults that people met in public, group 2 (B035..B053), and their kin."""

import io
import random
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_bytes import chunk, encoded, noise, png_of
from PIL import Image, ImageCms, ImageFilter

from schemas.codes import RejectReason
from schemas.errors import MemberRejected
from schemas.geometry import (
    FrameKind,
    Point,
    SeenImage,
    Size,
    point_from_frame,
    point_to_frame,
)
from schemas.resize import AnyResizeRule
from transforms.decode import DecodedImage, ImageSettings, decode_image
from transforms.pixels import normalize, page_colour
from transforms.profiles.load import list_profiles, load_profile
from transforms.resize import seen_chain, seen_image

RED = (255, 0, 0)


def decoded(data: bytes, **changes: object) -> DecodedImage:
    return decode_image(data, ImageSettings(**changes))  # type: ignore[arg-type] # by name


def refusal(data: bytes, **changes: object) -> MemberRejected:
    with pytest.raises(MemberRejected) as caught:
        decoded(data, **changes)
    return caught.value


def photo(width: int = 320, height: int = 200) -> Image.Image:
    return noise(width, height).filter(ImageFilter.GaussianBlur(2))


# B042: truncation, also where the file pretends to be whole


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_jpeg_with_a_hole_is_refused_and_not_filled_with_grey(
    mode: str, options: dict[str, object]
) -> None:
    """Both ends are there, as after a download that went on at the wrong place."""
    whole = encoded(photo().convert(mode), "JPEG", **options)
    half, step = len(whole) // 2, len(whole) // 5
    for damaged in (whole[:half] + whole[-2:], whole[:half] + whole[half + step :]):
        assert refusal(damaged).reason in {
            RejectReason.IMAGE_TRUNCATED,
            RejectReason.IMAGE_CORRUPT,
        }


def test_a_few_bytes_too_many_before_a_marker_are_harmless() -> None:
    """Some phones leave them; libjpeg warns of them as of a hole."""
    whole = encoded(photo(), "JPEG")
    result = decoded(whole[:-2] + b"\x11\x22\x33" + whole[-2:])
    assert result.image.tobytes() == decoded(whole).image.tobytes()


def test_a_jpeg_has_the_pixels_that_pillow_gives() -> None:
    for options in ({}, {"progressive": True}, {"subsampling": 0}, {"subsampling": 1}):
        for mode in ("RGB", "L"):
            data = encoded(photo().convert(mode), "JPEG", **options)
            with Image.open(io.BytesIO(data)) as image:
                assert decoded(data).image.tobytes() == image.convert("RGB").tobytes()


def test_a_preallocated_file_whose_end_was_never_written_is_refused() -> None:
    for kind in ("PNG", "JPEG", "GIF", "AVIF", "WEBP"):
        whole = encoded(photo(), kind)
        half = len(whole) // 2
        assert refusal(whole[:half] + bytes(len(whole) - half)).reason in {
            RejectReason.IMAGE_TRUNCATED,
            RejectReason.IMAGE_CORRUPT,
        }


@pytest.mark.parametrize("colour", [0, 2, 4, 6])
def test_a_png_with_fewer_rows_than_it_announces_is_refused(colour: int) -> None:
    """The stream ends properly and every checksum is right: Pillow alone says nothing."""
    samples = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    row = b"\0" + bytes(range(1, 16 * samples + 1))
    assert decoded(png_of(16, 12, 8, colour, row * 12)).size == Size(16, 12)
    error = refusal(png_of(16, 12, 8, colour, row * 7))
    assert (error.reason, "rows are missing" in error.detail) == (
        RejectReason.IMAGE_TRUNCATED,
        True,
    )


def adam7(width: int, height: int) -> bytes:
    """Rows of an interlaced grey PNG, whose passes come one after the other."""
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
              (0, 1, 1, 2))  # fmt: skip
    return b"".join(
        b"\0" + bytes(range(1, len(range(x, width, dx)) + 1))
        for x, y, dx, dy in passes
        for _ in range(y, height, dy)
    )


def test_an_interlaced_png_without_its_last_pass_is_refused() -> None:
    def interlaced(rows: bytes) -> bytes:
        header = struct.pack(">IIBBBBB", 20, 12, 8, 0, 0, 0, 1)
        body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + body

    rows = adam7(20, 12)
    assert decoded(interlaced(rows)).size == Size(20, 12)
    assert refusal(interlaced(rows[: -21 * 6])).reason == RejectReason.IMAGE_TRUNCATED
    assert refusal(interlaced(rows[:-1])).reason == RejectReason.IMAGE_TRUNCATED


def test_a_bitmap_whose_fourth_byte_was_never_alpha_is_not_blank() -> None:
    """Windows writes zeros there; a viewer shows the picture all the same."""
    pixels = bytes((30, 20, 10, 0)) * (16 * 12)
    info = struct.pack("<IiiHHIIiiII", 108, 16, 12, 1, 32, 3, len(pixels), 0, 0, 0, 0)
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = info + masks + bytes(108 - len(info) - len(masks))
    whole = b"BM" + struct.pack("<IHHI", 14 + 108 + len(pixels), 0, 0, 14 + 108) + header + pixels
    result = decoded(whole)
    assert result.image.getpixel((3, 3)) == (10, 20, 30)
    assert result.flags == ("alpha_ignored",)


def test_a_jpeg_of_a_kind_that_is_not_read_says_so() -> None:
    whole = bytearray(encoded(photo(), "JPEG"))
    frame = whole.index(b"\xff\xc0")
    whole[frame + 4] = 12  # bits a sample
    assert refusal(bytes(whole)).reason == RejectReason.IMAGE_UNSUPPORTED


@given(st.integers(8, 40), st.integers(8, 40), st.sampled_from(["1", "L", "P", "RGB", "RGBA"]))
def test_black_rows_are_rows(width: int, height: int, mode: str) -> None:
    for options in ({}, {"optimize": True}):
        assert decoded(encoded(Image.new(mode, (width, height)), "PNG", **options)).size == Size(
            width, height
        )


def test_a_tiff_cut_inside_its_pixels_is_refused_whatever_the_codec() -> None:
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "jpeg"):
        whole = encoded(photo(), "TIFF", compression=compression)
        assert decoded(whole).size == Size(320, 200)
        directory = struct.unpack_from("<I", whole, 4)[0]
        if directory < len(whole) // 2:  # else the cut takes the directory, and Pillow notices
            assert refusal(whole[: len(whole) - 999]).reason == RejectReason.IMAGE_TRUNCATED
        assert refusal(whole[: len(whole) // 2])


def test_a_gif_with_bytes_after_its_end_is_whole() -> None:
    data = encoded(photo(), "GIF", save_all=True, append_images=[photo().rotate(5)])
    for tail in (b"\0" * 9, b"mas", b";;", b"<!-- proxy -->"):
        assert decoded(data + tail).frame_count == 2
    assert refusal(data[:-1] + b"\0mas").reason == RejectReason.IMAGE_TRUNCATED


# B043, B040: checksums and bombs


def test_a_text_chunk_that_inflates_to_anything_costs_nothing() -> None:
    """Pillow alone refuses the image for it; nothing of the text is used."""
    whole = encoded(photo(), "PNG")
    bomb = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(2**24)))
    flood = chunk(b"iTXt", b"k\0\0\0\0\0" + bytes(2**21))
    first = whole.index(b"IDAT") - 4
    result = decoded(whole[:first] + bomb + flood + whole[first:])
    assert result.image.tobytes() == decoded(whole).image.tobytes()


def test_the_number_of_chunks_is_limited() -> None:
    whole = encoded(photo(), "PNG")
    end = whole.index(b"IEND") - 4
    many = whole[:end] + chunk(b"tEXt", b"a\0b") * 300 + whole[end:]
    assert decoded(many).size == Size(320, 200)
    assert refusal(many, max_png_chunks=300).reason == RejectReason.IMAGE_TOO_LARGE


def test_limits_of_side_aspect_and_bytes_are_checked_before_pixels() -> None:
    tall = png_of(16, 4000, 8, 2, b"")  # no pixels at all: the header alone is judged
    assert refusal(tall, max_side=3999).reason == RejectReason.IMAGE_TOO_LARGE
    narrow = refusal(tall, max_aspect=100)
    assert narrow.reason == RejectReason.IMAGE_TOO_NARROW
    assert "250.0 times" in narrow.detail
    assert "input.max_aspect" in narrow.detail
    assert refusal(encoded(photo(), "PNG"), max_bytes=1024).reason == RejectReason.IMAGE_TOO_LARGE


def test_aspect_two_hundred_is_taken_and_beyond_is_not() -> None:
    """B050: 200x20000 must work."""
    assert decoded(encoded(Image.new("RGB", (20, 2000)), "PNG")).size == Size(20, 2000)
    assert refusal(png_of(200, 40_201, 8, 2, b"")).reason == RejectReason.IMAGE_TOO_NARROW


# B036: transparency on a stated colour


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_shows_the_stated_page(mode: str) -> None:
    image = Image.new("RGBA", (20, 16), (0, 0, 0, 0))
    data = encoded(image.convert(mode), "PNG", **({"transparency": 0} if mode == "P" else {}))
    result = decoded(data, background=page_colour("#10A0f0"))
    assert result.image.getpixel((5, 5)) == (16, 160, 240)


def test_a_transparent_level_of_16_bit_grey_is_transparent() -> None:
    row = b"\0" + struct.pack(">H", 257) * 4 + struct.pack(">H", 65535) * 4
    data = png_of(8, 8, 16, 0, row * 8)
    at = data.index(b"IDAT") - 4
    data = data[:at] + chunk(b"tRNS", struct.pack(">H", 257)) + data[at:]
    result = decoded(data, background=RED)
    assert result.image.getpixel((0, 0)) == RED
    assert result.image.getpixel((7, 7)) == (255, 255, 255)


# Colours: embedded profiles


def display_p3() -> bytes:
    """A profile with wider primaries than sRGB, made from the sRGB one by swapping its red."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    tags = struct.unpack_from(">I", profile, 128)[0]
    for index in range(tags):
        name, offset, _ = struct.unpack_from(">4sII", profile, 132 + 12 * index)
        if name == b"rXYZ":  # red of Display P3, adapted to D50, as s15Fixed16
            struct.pack_into(
                ">iii", profile, offset + 8, *(round(v * 65536) for v in (0.5151, 0.2412, -0.0011))
            )
    return bytes(profile)


def test_colours_of_a_wider_profile_become_srgb() -> None:
    colours = Image.new("RGB", (20, 16), (200, 80, 80))
    for kind, options in (("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {})):
        result = decoded(encoded(colours, kind, icc_profile=display_p3(), **options))
        red, green, blue = result.image.getpixel((3, 3))  # type: ignore[misc] # an RGB pixel
        assert red > 205
        assert result.flags == ("icc_converted",)
        assert abs(green - 80) > 1 or abs(blue - 80) > 1


def test_a_profile_that_is_srgb_changes_no_pixel_and_needs_no_flag() -> None:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for kind in ("PNG", "TIFF"):
        result = decoded(encoded(photo(), kind, icc_profile=srgb))
        assert (result.flags, result.image.tobytes()) == ((), photo().tobytes())


@pytest.mark.parametrize("profile", [b"nada", bytes(500), display_p3()[:300]])
def test_a_senseless_profile_costs_no_image(profile: bytes) -> None:
    result = decoded(encoded(photo(), "PNG", icc_profile=profile))
    assert (result.flags, result.image.tobytes()) == (("icc_ignored",), photo().tobytes())


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
def test_a_profile_for_rgb_fits_or_is_ignored_in_every_mode(mode: str) -> None:
    image = Image.new("RGBA", (20, 16), (200, 80, 80, 255)).convert(
        "RGB" if mode == "CMYK" else mode
    )
    kind = "PNG"
    if mode == "CMYK":
        image, kind = image.convert("CMYK"), "TIFF"
    result = decoded(encoded(image, kind, icc_profile=display_p3()))
    assert ("icc_ignored" in result.flags) == (mode == "CMYK")
    assert result.image.mode == "RGB"


# One step for every path


@st.composite
def any_image(draw: st.DrawFn) -> Image.Image:
    size = (draw(st.integers(8, 24)), draw(st.integers(8, 24)))
    mode = draw(st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]))
    pixels = random.Random(draw(st.integers(0, 99))).randbytes(size[0] * size[1] * 4)
    if mode == "I;16":
        half = np.frombuffer(pixels[: size[0] * size[1] * 2], dtype=np.uint16)
        return Image.fromarray(half.reshape(size[1], size[0]))
    return Image.frombytes("RGBA", size, pixels).convert(mode)


@given(any_image(), st.integers(1, 8), st.sampled_from([None, display_p3()]))
def test_bytes_and_images_in_memory_give_the_same_pixels(
    image: Image.Image, orientation: int, profile: bytes | None
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"icc_profile": profile} if profile else {}
    data = encoded(image, "PNG", exif=exif.tobytes(), **options)
    of_bytes = decoded(data).image
    of_image, _ = seen_image(Image.open(io.BytesIO(data)), None)
    assert (of_bytes.size, of_bytes.tobytes()) == (of_image.size, of_image.tobytes())
    again = normalize(of_image)
    assert (again.image.tobytes(), again.flags) == (of_image.tobytes(), frozenset())


# B049, B051, B053: long pages, through every profile


EXTREME = [(1080, 20_000), (690, 15_420), (332, 27), (20_000, 1080)]


@pytest.mark.parametrize("name", list_profiles())
@pytest.mark.parametrize("size", EXTREME)
def test_a_place_on_an_extreme_page_survives_the_way_to_the_model_and_back(
    name: str, size: tuple[int, int]
) -> None:
    chain = seen_chain(SeenImage.unchanged(Size(*size)), load_profile(name).resize)
    for x, y in ((0.0, 0.0), (size[0] / 3, size[1] - 5.0), (float(size[0]), float(size[1]))):
        for frame in FrameKind:
            told = point_to_frame(Point(x, y), frame, chain)
            back = point_from_frame(*told, frame, chain)
            assert (back.x, back.y) == pytest.approx((x, y), abs=1e-6)


RULES = {load_profile(name).resize: name for name in list_profiles()}


@pytest.mark.parametrize("rule", RULES, ids=list(RULES.values()))
def test_what_lies_far_down_a_long_page_is_seen_where_the_chain_says(
    rule: AnyResizeRule | None,
) -> None:
    """Real pixels: a red block near the end of 1080x20000, found in what the model is shown."""
    page = Image.new("RGB", (1080, 20_000), (255, 255, 255))
    page.paste(RED, (700, 19_000, 1000, 19_400))
    shown, chain = seen_image(page, rule)
    assert shown.size == (chain.seen.width, chain.seen.height)
    for point, inside in ((Point(850, 19_200), True), (Point(850, 18_600), False)):
        x, y = chain.to_seen(point)
        red, green, _ = shown.getpixel((int(x), int(y)))  # type: ignore[misc] # an RGB pixel
        assert (red > 200, green < 80) == (True, inside)


def test_a_page_too_narrow_for_one_model_says_what_it_would_become() -> None:
    rule = load_profile("qwen3-vl").resize
    assert rule is not None
    with pytest.raises(MemberRejected) as caught:
        seen_chain(SeenImage.unchanged(Size(20_000, 100)), rule)
    assert caught.value.reason == RejectReason.IMAGE_TOO_NARROW
    assert "20000x100 is too narrow for this model" in caught.value.detail
    assert "would become" in caught.value.detail
    assert "cut the page" in caught.value.detail
