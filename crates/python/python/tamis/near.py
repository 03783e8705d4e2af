"""Columns near their data: how a server of Tamis is asked for columns of a table in one request.

`GET /BUCKET/KEY?x-tamis-columns=a,b&x-tamis-filter=[["day",">=",3]]` is answered with parts, each
`offset u64 LE, length u64 LE, bytes`: first the footer, then the chunks of those columns in row
groups that may have such a row. Servers of others pass the query over, and so does Amazon
(docs/decisions/071).

boto3 knows no such query: a parameter of GetObject is taken from it before it looks, and put into
the address before that is signed.
"""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from numbers import Integral, Real
from typing import Any, Dict, List, Optional, Sequence, Tuple
from urllib.parse import quote, urlencode

PARAMETER = "TamisQuery"
CONTENT_TYPE = "application/vnd.tamis.parts"
UNREAD = ("ParquetParsingError", "InvalidRange")
"""What the server, or one of others, says of what it does not read as a table: bytes are left."""
QUERY_BYTES_MAX = 16 << 10
VALUES_MAX = 500
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def query(
    columns: Optional[Sequence[str]], alternatives: Sequence[Sequence[Any]]
) -> Optional[str]:
    """The query for these columns, all without any; None: it cannot say what is asked for."""
    names = list(columns or [])
    if columns is not None and (not names or any(not name or "," in name for name in names)):
        return None
    try:
        terms = [[_term(*term) for term in one] for one in alternatives]
        told = json.dumps(terms, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return None
    lengths = [len(value) for one in terms for _, _, value in one if isinstance(value, list)]
    if sum(lengths) > VALUES_MAX:
        return None
    asked = {"x-tamis-columns": ",".join(names), **({"x-tamis-filter": told} if terms else {})}
    text = urlencode(asked, quote_via=quote, safe="")
    return text if len(text) <= QUERY_BYTES_MAX else None


def _term(name: str, operator: str, value: Any) -> Tuple[str, str, Any]:
    is_list = operator in ("in", "not in")
    return name, operator, [_literal(one) for one in value] if is_list else _literal(value)


def _literal(value: Any) -> Any:
    """A value as JSON has it; `TypeError` or `ValueError`: it has no such value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        value.encode()
        return value
    if isinstance(value, datetime):
        in_utc = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return {"timestamp_us": (in_utc - EPOCH) // timedelta(microseconds=1)}
    if isinstance(value, date):
        return {"date": (value - EPOCH.date()).days}
    if isinstance(value, Integral) and -(2**63) <= int(value) < 2**64:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral):
        return float(value)
    raise TypeError(f"{type(value).__name__} has no form in a query")


def parts_of(body: memoryview) -> List[Tuple[int, memoryview]]:
    """The parts of a body."""
    parts = []
    while len(body):
        offset, length = (int.from_bytes(body[at : at + 8], "little") for at in (0, 8))
        parts.append((offset, body[16 : 16 + length]))
        body = body[16 + length :]
    return parts


def register(events: Any) -> None:
    """Lets GetObject of this client have the parameter."""
    events.register("before-parameter-build.s3.GetObject", _take)
    events.register("before-sign.s3.GetObject", _add)


def _take(params: Dict[str, Any], context: Dict[str, Any], **_: Any) -> None:
    context[PARAMETER] = params.pop(PARAMETER, None)


def _add(request: Any, **_: Any) -> None:
    asked = request.context.get(PARAMETER)
    if asked:
        request.url += ("&" if "?" in request.url else "?") + asked
