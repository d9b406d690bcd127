"""What can go wrong on the way to a server, as `LabelStudioError` without anything private.

`str(ApiError)` holds response headers with a session cookie, and a refused import echoes the whole
task: neither may reach a log. Only the status, what was being done, and short fields that describe
the server's own state are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
from label_studio_sdk.core.api_error import ApiError

from schemas.errors import LabelStudioError

MAX_DETAIL = 300
"""Characters of the server's own words that are kept."""

_UNAUTHORIZED = 401
_REDIRECTS = (301, 302, 303, 307, 308)
_MAYBE_DONE = (200, 408, 429)
_REFUSED = (400, 413, 422)
_GONE = 404
_SERVER_ERRORS = 500


class OutcomeUnknownError(LabelStudioError):
    """The server may have done what was asked, or not: look it up, never send it again blindly."""


class RequestRefusedError(LabelStudioError):
    """The server refused what it was sent as a whole: smaller parts of it may be taken."""


class RequestGoneError(LabelStudioError):
    """The server does not have what was asked for."""


@contextmanager
def explained(action: str, *, private: bool = False) -> Iterator[None]:
    """Turn the SDK's and httpx's errors into ours.

    Args:
        action: what is being done, for the message, for example `importing 100 tasks`.
        private: the request carries task text, so the server's reply may echo it and is dropped.

    Raises:
        OutcomeUnknownError: the request left and no clear answer came back.
        RequestRefusedError: the server did not like what it was sent.
        RequestGoneError: there is no such thing on the server.
        LabelStudioError: the server refused, or was not reached.
    """
    try:
        yield
    except ApiError as error:
        raise _from_api(action, error, private=private) from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise LabelStudioError(
            f"{action}: the server was not reached ({type(error).__name__})"
        ) from None
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise OutcomeUnknownError(
            f"{action}: no answer came back ({type(error).__name__})"
        ) from None
    except (httpx.InvalidURL, httpx.CookieConflict) as error:
        raise LabelStudioError(f"{action}: the request is not valid ({error})") from None
    except ValueError as error:
        raise OutcomeUnknownError(
            f"{action}: the answer is not what Label Studio sends ({type(error).__name__})"
        ) from None


def _from_api(action: str, error: ApiError, *, private: bool) -> LabelStudioError:
    status = error.status_code
    if status in _REDIRECTS:
        return LabelStudioError(f"{action}: {redirect_hint(_location(error.headers))}")
    detail = "" if private else _detail(error.body)
    if status == _UNAUTHORIZED:
        return LabelStudioError(f"{action}: {_token_hint(detail)}")
    text = f"{action}: the server answered {status}" + (f": {detail}" if detail else "")
    if status is None or status in _MAYBE_DONE or status >= _SERVER_ERRORS:
        return OutcomeUnknownError(text)
    if status == _GONE:
        return RequestGoneError(text)
    return RequestRefusedError(text) if status in _REFUSED else LabelStudioError(text)


def redirect_hint(location: str) -> str:
    """What to say of a redirect: followed, a POST would silently become a GET."""
    parts = urlsplit(location)
    where = f"{parts.scheme}://{parts.netloc}" if parts.netloc else parts.path
    return f"the server redirects to {where or 'another address'}; write that address as `url`"


def _location(headers: Mapping[str, str] | None) -> str:
    return (headers or {}).get("location", "")


def _token_hint(detail: str) -> str:
    if "legacy token authentication has been disabled" in detail:
        return (
            "this server takes no legacy tokens; make a personal access token "
            "(Account & Settings, Personal Access Token) or let it take legacy tokens again"
        )
    return "the token was not accepted (401)" + (f": {detail}" if detail else "")


def _detail(body: object) -> str:
    """The server's own short words about a refusal, one line."""
    if not isinstance(body, Mapping):
        return ""
    fields = (body.get("detail"), body.get("validation_errors"))
    text = "; ".join(str(field) for field in fields if field)
    return " ".join(text.split())[:MAX_DETAIL]
