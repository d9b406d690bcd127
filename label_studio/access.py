"""Access that ends before its time: renewed once and the call repeated, never more.

A personal access token buys access for some minutes. The SDK renews it by this machine's clock; a
server with another clock, or one that was restarted with another key, refuses it earlier.
"""

from __future__ import annotations

from collections.abc import Generator

import httpx

_REFRESH = "/api/token/refresh/"


class RenewedAccess(httpx.Auth):
    """Renews access when the server says 401, and repeats the call, which it has not done.

    Args:
        url: base address of the server.
        token: the personal access token; legacy tokens are never renewed.
    """

    requires_response_body = True

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self._access = ""

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """One call, with a second try after a refusal."""
        bearer = request.headers.get("Authorization", "").startswith("Bearer ")
        if not bearer:
            yield request
            return
        if self._access:
            request.headers["Authorization"] = f"Bearer {self._access}"
        response = yield request
        if response.status_code != httpx.codes.UNAUTHORIZED:
            return
        renewed = yield httpx.Request(
            "POST", f"{self._url}{_REFRESH}", json={"refresh": self._token}
        )
        if renewed.is_success:
            self._access = str(renewed.json()["access"])
            request.headers["Authorization"] = f"Bearer {self._access}"
            yield request
