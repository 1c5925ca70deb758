"""A cache of expressions built in the JVM.

pyspark lets the JVM build an expression part by part, with one round trip for each part and another to release it: a
silver batch of one small table takes some three and a half thousand round trips, of which all but a few hundred repeat
those of the batch before. An expression is a value, so an expression built by the same name from the same parts is
cached and reused (decision 0056).

What has an identity of its own is built each time: an alias gives its column an id that no other column of a plan may
have, likewise an aggregate its result, and everything made from one. So is every function that is not listed here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column

_FUNCTIONS = frozenset(
    {
        *("array", "array_compact", "array_contains", "call_function", "coalesce", "col", "concat", "concat_ws"),
        *("conv", "create_map", "element_at", "from_json", "get", "get_json_object", "greatest", "hex", "least"),
        *("json_object_keys", "length", "lit", "lower", "lpad", "map_from_arrays", "map_from_entries", "named_struct"),
        *("not", "octet_length", "regexp_extract", "regexp_replace", "size", "split", "struct", "substr", "substring"),
        *("to_json", "try_element_at", "when", "xxhash64"),
    }
)
_METHODS = frozenset(
    {
        *("equalTo", "notEqual", "eqNullSafe", "gt", "lt", "geq", "leq", "and", "or", "isNull", "isNotNull", "isin"),
        *("plus", "minus", "multiply", "divide", "mod", "cast", "when", "otherwise", "getItem", "getField", "apply"),
        *("startsWith", "endsWith", "contains", "like", "rlike", "substr", "asc", "desc"),
    }
)
_LITERALS = (str, int, bool, type(None))
"""Types whose equal values are the same literal; those of others need not be (0.0 and -0.0, 1.0 and 1.00)."""

_MOST = 20_000
"""The greatest number of cached expressions: each batch has some that no other has, such as a version or a time."""

_LONG = 16 << 10
"""Texts of more characters are not cached: the text about the templates of a batch's topics grows with their number,
and differs for each selection of topics.
"""

_LISTED = 10
"""The greatest number of members that `List.of` accepts individually."""


class ExpressionCache:
    """The expressions built in one JVM."""

    def __init__(self) -> None:
        self._built: dict[tuple[Any, ...], _CachedExpression] = {}

    def get_or_build(self, build: Callable[[], Any], *parts: Any) -> Any:
        """Return what ``build`` makes of the parts: cached if all of them are cached expressions or literals, else
        built now.
        """
        key = tuple(part if isinstance(part, _CachedExpression) else _literal_key(part) for part in parts)
        if None in key:
            return build()
        found = self._built.get(key)
        if found is None:
            if len(self._built) >= _MOST:
                self._built.clear()  # references held elsewhere stay valid
            found = self._built[key] = _CachedExpression(build(), self)
        return found


def install_cache(jvm: Any) -> None:
    """Let pyspark, through its view of a JVM, build no expression twice."""
    cache = ExpressionCache()
    jvm.functions = _Functions(jvm.functions, cache)
    setattr(jvm, "org.apache.spark.sql.functions", jvm.functions)
    jvm.PythonUtils = _Utilities(jvm.PythonUtils, jvm.java.util.List, cache)


def struct(fields: Mapping[str, Column]) -> Column:
    """STRUCT of these fields: as ``functions.struct`` of aliases, without an alias."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    return F.named_struct(*[part for name, value in fields.items() for part in (F.lit(name), value)])


def string_array(values: Iterable[str]) -> Column:
    """ARRAY<STRING> of these values: one literal, whatever their number."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - as above

    return F.from_json(F.lit(json.dumps(list(values))), "ARRAY<STRING>")


def any_of(conditions: Iterable[Column]) -> Column:
    """Whether one of the conditions is true, as with ``|``. They are combined by halves, since Spark's stack has no
    room for a thousand nested ones.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    some = list(conditions)
    while len(some) > 1:
        pairs = zip_longest(some[::2], some[1::2])
        some = [one if other is None else one | other for one, other in pairs]
    return some[0] if some else F.lit(False)


def _literal_key(part: Any) -> tuple[type, Any] | None:
    """The cache key of a literal; None for a part that is not a literal, for one whose equal values may differ, and for
    a text too long to be cached.
    """
    if type(part) is str and len(part) > _LONG:
        return None
    if type(part) is dict:  # a function's options
        return dict, tuple(part.items())
    return (type(part), part) if type(part) in _LITERALS else None


class _CachedExpression:
    """A column or a sequence of columns in the JVM, which py4j accepts as the Java object that it wraps."""

    def __init__(self, java: Any, cache: ExpressionCache) -> None:
        self._java, self._kept = java, cache

    def _get_object_id(self) -> Any:
        return self._java._get_object_id()  # noqa: SLF001 - how py4j asks

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # looked up by Python on every object
            raise AttributeError(name)
        member = getattr(self._java, name)
        if name not in _METHODS:
            return member
        return lambda *parts: self._kept.get_or_build(lambda: member(*parts), self, name, *parts)


class _Functions:
    """Wraps ``org.apache.spark.sql.functions``."""

    def __init__(self, java: Any, cache: ExpressionCache) -> None:
        self._java, self._kept = java, cache

    def __getattr__(self, name: str) -> Any:
        java, kept = getattr(self._java, name), self._kept
        if name not in _FUNCTIONS:
            return java

        def function(*parts: Any) -> Any:
            return kept.get_or_build(lambda: java(*parts), "functions", name, *parts)

        setattr(self, name, function)  # looked up hundreds of times a batch
        return function


class _Utilities:
    """Wraps ``PythonUtils``, whose sequences of columns are parts of expressions."""

    def __init__(self, java: Any, lists: Any, cache: ExpressionCache) -> None:
        self._java, self._list_of, self._kept = java, lists.of, cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._java, name)

    def toSeq(self, columns: Any) -> Any:  # noqa: N802 - its name
        """Convert a list or an iterator; a short one in one round trip, where py4j takes one for each member."""
        every = list(columns)

        def made() -> Any:
            return self._java.toSeq(self._list_of(*every) if len(every) <= _LISTED else every)

        return self._kept.get_or_build(made, "sequence", *every)
