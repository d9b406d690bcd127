"""What a file name in a shard means: an image, a sidecar, something to ignore."""

from __future__ import annotations

IMAGE_SUFFIXES = frozenset(
    {
        *(".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".webp", ".gif", ".bmp"),
        *(
            ".dib",
            ".tif",
            ".tiff",
            ".avif",
            ".heic",
            ".heif",
        ),  # HEIC is refused by name, see decode
    }
)
SIDECAR_SUFFIX = ".json"
_REFUSED_TAR_SUFFIXES = (".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")
"""Taken for shards so that they are refused by name, and not passed over."""

TAR_SUFFIXES = (
    *(".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.zstd", ".tzst"),
    *_REFUSED_TAR_SUFFIXES,
)
PARQUET_SUFFIXES = (".parquet", ".pq")
ZIP_SUFFIX = ".zip"
DEFAULTS_NAME = "shard.toml"
MESSAGES_NAME = "interact_messages.json"
_METADATA_SUFFIXES = (".jsonl", ".csv", ".parquet")

DEAD_LINK = "a link to a file that is not there, or to itself"
"""What is said of a link that leads nowhere."""

_IGNORED_NAMES = frozenset({"thumbs.db", "desktop.ini", "_success", DEFAULTS_NAME})
_IGNORED_FOLDER = "__MACOSX"


def is_ignored(name: str) -> bool:
    """Whether `name` is litter of an operating system or of a job, never a screenshot.

    Hidden files and folders (with them `.DS_Store` and the AppleDouble `._name`), `__MACOSX/`,
    `Thumbs.db`, `desktop.ini` and `_SUCCESS`; and `shard.toml`, which is read where it lies beside
    a shard or in a folder of images, and means nothing inside a tar or a zip.
    """
    parts = [part for part in name.split("/") if part not in {"", ".", ".."}]
    hidden = any(part.startswith(".") or part == _IGNORED_FOLDER for part in parts)
    return hidden or not parts or parts[-1].lower() in _IGNORED_NAMES


def suffix(name: str) -> str:
    """The last suffix in lower case, with its dot, or an empty text."""
    stem, dot, last = base_name(name).rpartition(".")
    return f".{last}".lower() if dot and stem and last else ""


def is_image(name: str) -> bool:
    """Whether `name` says it is an image that can be read; its bytes are looked at later."""
    return suffix(name) in IMAGE_SUFFIXES


def is_sidecar(name: str) -> bool:
    """Whether `name` is a JSON file."""
    return suffix(name) == SIDECAR_SUFFIX


def is_shard_file(name: str) -> bool:
    """Whether `name` is a tar, a zip or a Parquet file."""
    return name.lower().endswith((*TAR_SUFFIXES, *PARQUET_SUFFIXES, ZIP_SUFFIX))


def is_metadata(name: str) -> bool:
    """Whether `name` is a table about the images of a folder: `metadata*.jsonl|csv|parquet`."""
    base = base_name(name).lower()
    return base.startswith("metadata") and base.endswith(_METADATA_SUFFIXES)


def base_name(name: str) -> str:
    """`name` without its folders."""
    return name.rpartition("/")[2]


def folder_of(name: str) -> str:
    """The folders of `name`, ending in `/`; empty where it has none."""
    return name[: len(name) - len(base_name(name))]


def sidecar_keys(image: str) -> tuple[str, ...]:
    """Names without `.json` under which the sidecar of `image` is looked for, best first.

    For `es/captura.v1.2.png`: `es/captura.v1.2` (the name without its last suffix),
    `es/captura.v1.2.png` (the whole name), and `es/captura` (up to the first dot, which is
    WebDataset's sample key). Dots in names of screenshots are mostly versions and dates, so the
    WebDataset rule comes last; with one dot, the usual case, the rules agree.
    """
    folder, slash, base = image.rpartition("/")
    stem = base.rpartition(".")[0]
    names = (stem, base, base.partition(".")[0])
    return tuple(dict.fromkeys(folder + slash + name for name in names))


def readable_name(raw: str) -> tuple[str, tuple[str, ...]]:
    """`raw` as valid Unicode, and a flag where it had to be decoded again.

    Names that are not UTF-8 reach us with surrogate escapes. They are read as Windows-1252
    (`name_cp1252`), and as Latin-1 where that has no such byte (`name_latin1`).
    """
    try:
        raw.encode()
    except UnicodeEncodeError:
        octets = raw.encode("utf-8", "surrogateescape")
        try:
            return octets.decode("cp1252"), ("name_cp1252",)
        except UnicodeDecodeError:
            return octets.decode("latin-1"), ("name_latin1",)
    return raw, ()
