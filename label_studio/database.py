"""Which database a local Label Studio keeps its work in, chosen once per data folder."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from label_studio.postgres import Postgres, cluster_folder, postgres_account, postgres_bin
from schemas.errors import LabelStudioError

SQLITE_FILE = "label_studio.sqlite3"
_CHOICE_FILE = "database.json"
_LOG = "postgres.log"
_WHY_NOT_SQLITE = "on SQLite it loses predictions while people work; use it for a trial"


class DatabaseKind(StrEnum):
    """What `pantalla studio --database` takes; `auto` is PostgreSQL where it is installed."""

    AUTO = "auto"
    POSTGRESQL = "postgresql"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True)
class Database:
    """The database of one data folder.

    Attributes:
        postgres: the cluster to start before the server, or None for SQLite.
        about: one line for a person.
    """

    postgres: Postgres | None
    about: str


def choose_database(data_dir: Path, wanted: DatabaseKind = DatabaseKind.AUTO) -> Database:
    """The database of `data_dir`: what it has, else what is wanted, else the best there is.

    Args:
        data_dir: an existing folder; a choice is kept in it.
        wanted: what the person asked for.

    Raises:
        LabelStudioError: PostgreSQL is wanted but not there, or the folder holds the other kind.
    """
    has = _kept(data_dir)
    if wanted is not DatabaseKind.AUTO and has is not None and has is not wanted:
        raise LabelStudioError(
            f"{data_dir} holds a {has.value} database; choose another --data-dir for {wanted.value}"
        )
    missing = _missing()
    kind = has or wanted
    if kind is DatabaseKind.SQLITE:
        kept = " (that is what the data folder holds)" if has else ""
        return Database(None, f"Database: SQLite{kept}; {_WHY_NOT_SQLITE}")
    if missing and kind is DatabaseKind.POSTGRESQL:
        raise LabelStudioError(missing)
    if missing:
        return Database(None, f"Database: SQLite, since {missing}; {_WHY_NOT_SQLITE}")
    cluster = Postgres(cluster_folder(data_dir), _password(data_dir), data_dir / _LOG)
    return Database(cluster, f"Database: PostgreSQL in {cluster.folder}")


def _kept(data_dir: Path) -> DatabaseKind | None:
    if (data_dir / _CHOICE_FILE).exists():
        return DatabaseKind.POSTGRESQL
    return DatabaseKind.SQLITE if (data_dir / SQLITE_FILE).exists() else None


def _missing() -> str:
    if postgres_bin() is None:
        return "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    if postgres_account() is None:
        return "PostgreSQL does not run as root and there is no account named postgres"
    return ""


def _password(data_dir: Path) -> str:
    """The password of the cluster's user, made once, readable by the folder's owner only."""
    path = data_dir / _CHOICE_FILE
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["password"])
    except FileNotFoundError:
        password = secrets.token_urlsafe(24)
    except (ValueError, TypeError, KeyError) as error:
        raise LabelStudioError(f"{path} is not readable: {error!r}") from error
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"kind": DatabaseKind.POSTGRESQL.value, "password": password}, file)
    return password
