"""Expressions that the JVM builds once.

pyspark has the JVM build an expression part by part, with a talk for each and one more to let go of it: a batch of
silver of one small table is some three and a half thousand talks, of which all but a few hundred say what the batch
before has said. An expression is a value, so what was built by the same name of the same parts is kept, and is the same
expression (decision 0056).

What has an identity of its own is built anew each time: an alias gives its column an id that no other column of a plan
may have, an aggregate its result, and all that is made of one. So is every function that is not named here.
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
"""Equal ones of one of these types are the same literal; of others they need not be (0.0 and -0.0, 1.0 and 1.00)."""

_MOST = 20_000
"""So many are kept: a batch has some that no other has, such as a version or a time."""

_LONG = 16 << 10
"""Characters of a text that is not kept: what is said of the templates of a batch's topics is as long as they are many,
and another one for each choice of topics.
"""

_LISTED = 10
"""So many members `List.of` takes as they are."""


class ExpressionCache:
    """What one JVM has built."""

    def __init__(self) -> None:
        self._built: dict[tuple[Any, ...], _CachedExpression] = {}

    def once(self, build: Callable[[], Any], *parts: Any) -> Any:
        """What ``build`` makes of parts that are kept, or literals: made once. Of others it is made now."""
        key = tuple(part if isinstance(part, _CachedExpression) else _literal_key(part) for part in parts)
        if None in key:
            return build()
        found = self._built.get(key)
        if found is None:
            if len(self._built) >= _MOST:
                self._built.clear()  # who holds some of them still has those
            found = self._built[key] = _CachedExpression(build(), self)
        return found


def install_cache(jvm: Any) -> None:
    """Have pyspark, by its view of a JVM, build no expression twice."""
    kept = ExpressionCache()
    jvm.functions = _Functions(jvm.functions, kept)
    setattr(jvm, "org.apache.spark.sql.functions", jvm.functions)
    jvm.PythonUtils = _Utilities(jvm.PythonUtils, jvm.java.util.List, kept)


def struct(fields: Mapping[str, Column]) -> Column:
    """STRUCT of these fields: ``functions.struct`` of aliases, without an alias."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    return F.named_struct(*[part for name, value in fields.items() for part in (F.lit(name), value)])


def string_array(values: Iterable[str]) -> Column:
    """ARRAY<STRING> of these: one literal, however many they are."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - as above

    return F.from_json(F.lit(json.dumps(list(values))), "ARRAY<STRING>")


def any_of(conditions: Iterable[Column]) -> Column:
    """Whether one of them is true, as ``|`` says it. Of a thousand, one around the other, Spark's stack has no room for
    so many: they are put together by halves.
    """
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    some = list(conditions)
    while len(some) > 1:
        pairs = zip_longest(some[::2], some[1::2])
        some = [one if other is None else one | other for one, other in pairs]
    return some[0] if some else F.lit(False)


def _literal_key(part: Any) -> tuple[type, Any] | None:
    """As it is told from others; None for what is no literal, for one that need not be the same as an equal one, and
    for a text that is too long to be kept.
    """
    if type(part) is str and len(part) > _LONG:
        return None
    if type(part) is dict:  # options of a function
        return dict, tuple(part.items())
    return (type(part), part) if type(part) in _LITERALS else None


class _CachedExpression:
    """A column or a sequence of columns in the JVM, which py4j takes for the object of Java that it stands for."""

    def __init__(self, java: Any, kept: ExpressionCache) -> None:
        self._java, self._kept = java, kept

    def _get_object_id(self) -> Any:
        return self._java._get_object_id()  # noqa: SLF001 - how py4j asks

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python asks of every object
            raise AttributeError(name)
        member = getattr(self._java, name)
        if name not in _METHODS:
            return member
        return lambda *parts: self._kept.once(lambda: member(*parts), self, name, *parts)


class _Functions:
    """``org.apache.spark.sql.functions``."""

    def __init__(self, java: Any, kept: ExpressionCache) -> None:
        self._java, self._kept = java, kept

    def __getattr__(self, name: str) -> Any:
        java, kept = getattr(self._java, name), self._kept
        if name not in _FUNCTIONS:
            return java

        def function(*parts: Any) -> Any:
            return kept.once(lambda: java(*parts), "functions", name, *parts)

        setattr(self, name, function)  # asked for hundreds of times a batch
        return function


class _Utilities:
    """``PythonUtils``, whose sequences of columns are parts of expressions."""

    def __init__(self, java: Any, lists: Any, kept: ExpressionCache) -> None:
        self._java, self._list_of, self._kept = java, lists.of, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._java, name)

    def toSeq(self, columns: Any) -> Any:  # noqa: N802 - its name
        """Of a list or an iterator; of a short one in one talk, where py4j has one for each member."""
        every = list(columns)

        def made() -> Any:
            return self._java.toSeq(self._list_of(*every) if len(every) <= _LISTED else every)

        return self._kept.once(made, "sequence", *every)
