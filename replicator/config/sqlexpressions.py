"""Lexical analysis of Spark SQL expressions, as far as it is possible without Spark."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from replicator import names

ALL_COLUMNS = "*"
"""Represents all columns, as in ``struct(*)``."""


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


AGGREGATES = _word_set(
    """any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bitmap_construct_agg
    bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp
    every first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg kurtosis last last_value
    listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
    stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance"""
)
WINDOW_FUNCTIONS = _word_set("cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number")
NONDETERMINISTIC = _word_set(
    """curdate current_catalog current_database current_date current_schema current_timestamp current_user
    localtimestamp monotonically_increasing_id now rand randn random shuffle user uuid"""
)
"""Functions over several rows, and nondeterministic ones."""

_KEYWORDS = _word_set(
    """all and any as asc between both by case collate desc distinct div else end escape exists false filter first
    following for from group ignore ilike in interval is last leading like not null nulls or order over partition
    placing preceding range regexp respect rlike row rows some then to trailing true unbounded unknown when where within
    current_date current_timestamp current_user localtimestamp session_user user date timestamp timestamp_ltz
    timestamp_ntz x year years quarter month months week weeks day days dayofyear hour hours minute minutes second
    seconds millisecond milliseconds microsecond microseconds nanosecond nanoseconds"""
)
"""Words that may occur unquoted in an expression without being a column."""

_TEXTS = re.compile(
    r"""( \b[rx]'[^']*' | \b[rx]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (`(?:[^`]|``)+`) | --[^\r\n]* | /\*.*?\*/""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""String literals, quoted names, and comments: none of them can begin within another."""

_WORDS = re.compile(
    r"""\.(?:`(?:[^`]|``)+` | [a-z_]\w*) | \b(as)\s+[a-z_]\w* | ::\s*\w+ | \w+(?=\s*\()
    | \b\d+(?:e[+-]?\d+)?(?:bd|[lsdfy])?\b | `((?:[^`]|``)+)` | (\w+) | (?<=[(,])\s*(\*)""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""Struct fields, types of casts, functions and numbers, which are skipped; names, quoted or not; ALL_COLUMNS."""

_LOCAL = re.compile(
    r"\b(\w+)\s*(?:->|=>|\bfrom\b) | \(([\w\s,]*)\)\s*-> | \bcollate\s+(\w+)", re.VERBOSE | re.ASCII | re.IGNORECASE
)
"""Parameters of lambda functions, parts of a time before ``FROM``, collations."""

_FUNCTIONS = re.compile(r"\bi?like\s+(?:all|any|some)\b | (?<![\w.])(\w+)\s*\(", re.VERBOSE | re.ASCII | re.IGNORECASE)
_CURRENT = re.compile(
    r"""(?<![\w.])(?:
    (?:current_date|current_timestamp|current_user|localtimestamp|session_user)\b(?!\s*\()
    | unix_timestamp\s*\(\s*\) )""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""What Spark takes for a function without parentheses unless a column has that name, which can be quoted; a function
that without arguments gives the current time.
"""
_MOVING_TIME = re.compile(r"['\"]\s*(?:now|today|tomorrow|yesterday)\b.*['\"]", re.ASCII | re.IGNORECASE)
_TIME_TYPE = r"(?:date|timestamp(?:_ltz|_ntz)?)"
_TYPED = re.compile(rf"\b{_TIME_TYPE}\s*$", re.ASCII | re.IGNORECASE)
_CAST = re.compile(rf"(?:\s*::|\s+as)\s*{_TIME_TYPE}\b", re.ASCII | re.IGNORECASE)
"""Texts that become the current time, or one relative to it, as a date or timestamp; what makes them one."""
_WINDOW = re.compile(r"\)\s*over\b", re.ASCII | re.IGNORECASE)
_QUERY = re.compile(r"\(\s*(?:select|with)\s+(?!(?:is|in|not|and|or|between|like)\b|[=<>!])", re.ASCII | re.IGNORECASE)
_NESTED_TYPE = re.compile(r"(?:\bas|::)\s*(?:array|map|struct)\s*<", re.ASCII | re.IGNORECASE)
_ARITHMETIC = re.compile(r"[\w\s.`()]*[-+*/%][-\w\s.`()+*/%]*", re.ASCII)


def list_columns(sql: str) -> list[str]:
    """Return the words of an expression that may be columns, by their source spelling and in order, including keywords.
    A word after a dot or ``AS``, or before a parenthesis, cannot be a column.
    """
    return [name for name, _ in _words(_strip_texts(sql))]


def find_unknown_column(sql: str, columns: Collection[str]) -> str | None:
    """Return the first word that must be a column and is none of these, by their source names, in any version; None if
    there is none. A name that begins with ``_`` may be an internal column.
    """
    bare = _strip_texts(sql)
    if _NESTED_TYPE.search(bare):  # its fields look like columns
        return None
    local = {word for found in _LOCAL.findall(bare) for word in re.findall(r"\w+", " ".join(found))}
    known = {ALL_COLUMNS, *columns}
    for name, is_quoted in _words(bare):
        may_be_other = not is_quoted and (name.lower() in _KEYWORDS or name in local)
        is_known = name.startswith("_") or not {name, re.sub(r"__v\d+$", "", name)}.isdisjoint(known)
        if not (may_be_other or is_known):
            return name
    return None


def row_level_obstacle(sql: str) -> str | None:
    """Return why an expression cannot be evaluated on each row alone, as the end of a sentence with an alternative;
    None if it can.
    """
    bare = _strip_quoted_names(sql)
    functions = [found.lower() for found in _FUNCTIONS.findall(bare)]
    current = _CURRENT.search(bare)
    if _QUERY.search(bare):
        return "a sub-query, which makes rows depend on others: join in a gold model"
    if _WINDOW.search(bare):
        return "a window, which makes rows depend on each other: rank in a gold model"
    varying = "which is not deterministic: compare with a column"
    if current is not None:
        return f"{current.group().lower()}, {varying}"
    moving = _find_moving_time(sql)
    if moving is not None:
        return f"the time {moving}, {varying}"
    reasons = (
        (AGGREGATES, "which is an aggregate over one row: aggregate in a gold model"),
        (WINDOW_FUNCTIONS, "which needs a window, so that rows depend on each other: rank in a gold model"),
        (NONDETERMINISTIC, varying),
    )
    found = ((name, why) for name in functions for kind, why in reasons if name in kind)
    return next((f"{name}(), {why}" for name, why in found), None)


def single_column(sql: str) -> str | None:
    """Return the column that is the entire expression, by its source name; None for any other expression."""
    found = list(_words(_strip_texts(sql)))
    is_word = len(found) == 1 and (found[0][1] or found[0][0].lower() not in _KEYWORDS)
    return found[0][0] if is_word and re.fullmatch(r"[\s(]*\w+[\s)]*", _strip_quoted_names(sql), re.ASCII) else None


def is_arithmetic(sql: str) -> bool:
    """Return whether the expression is only arithmetic on columns and numbers."""
    bare = _strip_quoted_names(sql)
    is_plain = not _FUNCTIONS.search(bare) and _ARITHMETIC.fullmatch(bare) is not None
    return is_plain and not any(
        name.lower() in _KEYWORDS for name, is_quoted in _words(_strip_texts(sql)) if not is_quoted
    )


def _find_moving_time(sql: str) -> str | None:
    """Return the first text that is a date or timestamp relative to the current time; None if there is none."""
    texts = (match for match in _TEXTS.finditer(sql) if match.group(1) and _MOVING_TIME.fullmatch(match.group(1)))
    typed = (text for text in texts if _TYPED.search(sql[: text.start()]) or _CAST.match(sql, text.end()))
    return next((text.group(1) for text in typed), None)


def _words(bare: str) -> Iterator[tuple[str, bool]]:
    """Yield names by their source spelling, and whether they are quoted."""
    for match in _WORDS.finditer(bare):
        if match.lastindex:
            yield names.decode(match[match.lastindex].replace("``", "`")), match.lastindex == 2


def _strip_texts(sql: str) -> str:
    """Remove comments, and the contents of string literals."""
    return _TEXTS.sub(lambda match: "''" if match.group(1) else match.group(2) or " ", sql)


def _strip_quoted_names(sql: str) -> str:
    """Remove comments and the contents of string literals, and replace each quoted name by a plain word."""
    return re.sub(r"`(?:[^`]|``)+`", "q", _strip_texts(sql))
