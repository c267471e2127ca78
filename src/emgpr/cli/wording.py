"""Translation of messages from the terms of the Python API to those of the command line.

Errors and warnings of the library name Python parameters, such as crs='EPSG:4326'. On the command
line, the same parameter is an option, --crs EPSG:4326.
"""

import re
from collections.abc import Collection

# Parameters with their options. A parameter without an option in the command that is running is set
# by emgpr fit or, if that has no such option either, only in Python.
OPTIONS = {
    "compositions": "--composition",
    "exceedance": "--above",
    "latent_learner": "--learner",
    "n_folds": "--folds",
    "n_jobs": "--jobs",
    "n_latents": "--latents",
    "n_members": "--members",
    "observed": "--known",
    "output_transform": "--transform",
    "random_state": "--seed",
} | {
    name: "--" + name.replace("_", "-")
    for name in (
        "batch_size", "bounds", "box", "by", "checkpoint", "combine", "conditioning", "crs",
        "device", "encoding", "fit_intercept", "inside", "kernel", "max_iter", "n_functions",
        "n_neighbours", "n_restarts", "n_start", "noise", "normalize_y", "output_bounds", "outputs",
        "parameter_uncertainty", "partition", "prior", "quantiles", "rank", "refine", "resolution",
        "spacing", "tolerance", "transfer", "units", "verbose",
    )
}  # fmt: skip
VALUE = r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^\[\]]*\]|[^\s,;:)]*[^\s,;:.)]"
NAMES = "|".join(sorted(OPTIONS, key=len, reverse=True))
ASSIGNMENT = re.compile(rf"(?<![\w'\"-])({NAMES})=({VALUE})")
HEADING = re.compile(rf"(?<![\w'\"-])(?:{NAMES})=['\"]auto['\"]: (\w)")
IN_PARENTHESES = re.compile(rf" \(({NAMES})\)")
AS_OBJECT = re.compile(rf"\b(set|pass|Set|Pass) ({NAMES})\b(?!=)")
LONG_NAME = re.compile(
    rf"(?<![\w'\"-])({'|'.join(name for name in OPTIONS if '_' in name)})(?![\w=])"
)
CLASS_NAME = re.compile(r"[A-Z][a-z]+[A-Z]")
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")

PHRASES = (
    (r"\bpredict_grid\b", "emgpr grid"),
    (
        r"Use predict_dataset with a Dataset that contains all input columns",
        "Use emgpr predict with a table that contains all input columns",
    ),
    (r"\btdr_file\b", "TDR"),
    (r"\bgeo_file\b", "GEO"),
    (r" on the estimator\b", ""),
    (
        r", or replace longitude and latitude by points in space: emgpr\.on_sphere\([^)]*\)",
        "",
    ),
    (r"are NaN \(Input y contains NaN only\)", "are missing"),
    (r"Leave this column out of Y\b", "Leave this column out of -y"),
    (r"\bWrite NaN there\b", "Leave these cells empty"),
    (r"\bWrite NaN where\b", "Leave cells empty where"),
    (r"\breplace (them|the values) with NaN\b", "leave their cells empty"),
    (r"\bwith positive values or NaN\b", "with positive values, leave their cells empty"),
    (
        r"\breplace zeros with half of the detection limit, or with NaN\b",
        "replace zeros with half of the detection limit, or leave their cells empty",
    ),
    (
        r"\bInput \w+ contains infinity or a value too large for dtype\('float64'\)",
        "The table contains infinity or a number that is too large",
    ),
    (r"\bobserved (?=(['\"]).*?\1 contains )", "Column "),
    (r"\bits bounds are None\b", "its bounds are none"),
    (r"\bwithin max_iter=(\d+)", r"within \1 iterations"),
    (r"\bSet n_members or batch_size to\b", "Set n_members to"),
    (r"\buse measured_against_predicted\b", "use emgpr plot MODEL predictions"),
    (r"\b([Ff])it with a box=", r"\1it in Python with a box="),
    (r"\b(a|A) report needs a fitted estimator\b", r"\1 report needs a model"),
)


def command_line_words(
    text: str, options: Collection[str], fit_options: Collection[str] = ()
) -> str:
    """Return a message in which Python parameters are replaced with options.

    `options` are those of the command that is running, and `fit_options` those of emgpr fit.

    >>> command_line_words("crs='EPSG:1' is unknown. Set crs='EPSG:4326'.", ["--crs"])
    '--crs EPSG:1 is unknown. Add --crs EPSG:4326.'
    >>> command_line_words("Use fewer processes (n_jobs). Set batch_size=200 or more.", ["--jobs"])
    'Use fewer processes (--jobs). In Python, set batch_size=200 or more.'
    >>> command_line_words("Change output_bounds.", ["--known"], ["--output-bounds"])
    'Change --output-bounds in emgpr fit.'
    """
    for pattern, words in PHRASES:
        text = re.sub(pattern, words, text)
    text = HEADING.sub(lambda found: found[1].upper(), text)

    def option(name: str) -> str | None:
        flag = OPTIONS[name]
        if flag in options:
            return flag
        return f"{flag} in emgpr fit" if flag in fit_options else None

    def assigned(found: re.Match[str]) -> str:
        flag, _, command = (option(found[1]) or "").partition(" ")
        return " ".join(filter(None, [flag, _as_typed(found[2]), command])) if flag else found[0]

    def in_parentheses(found: re.Match[str]) -> str:
        flag = option(found[1])
        return "" if flag is None else f" ({flag})"

    def as_object(found: re.Match[str]) -> str:
        flag = option(found[2])
        return found[0] if flag is None else f"{found[1]} {flag}"

    text = ASSIGNMENT.sub(assigned, text)
    text = AS_OBJECT.sub(as_object, IN_PARENTHESES.sub(in_parentheses, text))
    text = LONG_NAME.sub(lambda found: option(found[1]) or found[0], text)
    text = re.sub(r"\b(?:Set|Pass) (?=--)", "Add ", text)
    text = re.sub(r"\b(?:set|pass) (?=--)", "add ", text)
    return " ".join(_for_python_only(sentence) for sentence in SENTENCE_END.split(text))


def _as_typed(value: str) -> str:
    """Return a value as it is typed on a command line.

    >>> _as_typed("'EPSG:4326'"), _as_typed("(1, 2)")
    ('EPSG:4326', '1,2')
    """
    if value[0] in "([":
        return re.sub(r"[\s'\"]", "", value[1:-1])
    return value.strip("'\"")


def _for_python_only(sentence: str) -> str:
    """Mark a sentence that still names a parameter, because the command has no such option."""
    if "Python" in sentence:
        return sentence
    first, *others = sentence.split("; ")
    if _names_parameter(first):
        start = first[0] if CLASS_NAME.match(first) else first[0].lower()
        return "; ".join([f"In Python, {start}{first[1:]}", *others])
    return "; ".join([first, *(f"in Python, {c}" if _names_parameter(c) else c for c in others)])


def _names_parameter(clause: str) -> bool:
    return bool(ASSIGNMENT.search(clause) or LONG_NAME.search(clause))


def counted(n: int, noun: str) -> str:
    """Return a number with a noun, in the plural if necessary.

    >>> counted(1, "output"), counted(3, "output")
    ('1 output', '3 outputs')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
