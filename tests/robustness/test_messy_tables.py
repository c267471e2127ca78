"""Tables as they come: each is read at the first attempt, or refused with a remedy that works."""

import re
import warnings
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from emgpr import EMGPR
from emgpr.io import read_table
from tests.cli.commands import invoke

NAN = np.nan
CD = (0.5, 0.7, 0.9, 1.2)


class Read(NamedTuple):
    """A table that is read: the content of the file, its cadmium and the words of the warning."""

    text: str | bytes
    cadmium: tuple = CD
    warning: str = ""
    x: tuple = (1.5, 2.5, 3.5, 4.5)


class Refused(NamedTuple):
    """A table that is refused: the words of the message, and the remedy, as options or as text.

    The remedy must be part of the message.
    """

    text: str
    message: str
    remedy: tuple = ()
    edit: tuple = ()
    cadmium: tuple = CD
    x: tuple = (1.5, 2.5, 3.5, 4.5)


def rows(*cadmium, header="x,y,Cd", separator=",", decimal="."):
    """A table with x = 1.5, 2.5, … and y, which has whole numbers."""
    lines = [header]
    for i, value in enumerate(cadmium):
        x = f"{i + 1}.5".replace(".", decimal)
        lines.append(separator.join([x, str(i % 3), str(value)]))
    return "\n".join(lines) + "\n"


def german(*cadmium):
    return rows(*cadmium, header="x;y;Cd", separator=";", decimal=",")


TABLES = {
    "decimal commas and n.d.": Read(
        german("0,5", "n.d.", "0,9", "1,2"),
        (0.5, NAN, 0.9, 1.2),
        r"missing: 'n.d.' in column 'Cd' \(1 of 4 cells\)",
    ),
    "decimal commas and NA": Read(
        german("NA", "0,7", "0,9", "1,2"), (NAN, 0.7, 0.9, 1.2), "'NA' in column 'Cd'"
    ),
    "decimal commas with three digits": Read(german("0,500", "0,700", "0,900", "1,200")),
    "thousands or decimals, by semicolons": Read(
        "x;y;Cd\n1,500;0;0,500\n2,500;1;-\n3,500;2;0,900\n4,500;0;1,200\n",
        (0.5, NAN, 0.9, 1.2),
        "'-' in column 'Cd'",
    ),
    "several codes": Read(
        rows("0.5", "N/A", "—", "#DIV/0!", "null", "1.2"),
        (0.5, NAN, NAN, NAN, NAN, 1.2),
        "'N/A' in .*; '—' in .*; '#DIV/0!' in .*; and 1 more",
        (1.5, 2.5, 3.5, 4.5, 5.5, 6.5),
    ),
    "below a detection limit": Read(
        rows("<1.0", "< 1.4", "0.9", "1.2"),
        (0.5, 0.7, 0.9, 1.2),
        "2 of 4 values below a detection limit, .* half the limit: '<1.0' in 1 cell as 0.5",
    ),
    "below a limit with a decimal comma": Read(
        german("<1,0", "0,7", "≤1,8", "1,2"), warning="'<1,0' in 1 cell as 0.5; '≤1,8'"
    ),
    "below a limit that is not stated": Read(
        rows("<LOD", "1.0", "0.9", "1.2"), (0.45, 1.0, 0.9, 1.2), "'<LOD' is not stated"
    ),
    "quoted decimal commas": Read(
        'x,y,Cd\n"1,5",0,"0,5"\n"2,5",1,"0,7"\n"3,5",2,"0,9"\n"4,5",0,"1,2"\n'
    ),
    "a Windows file": Read(
        rows(*CD, header="x,y,Cd,of").replace("0.7\n", "0.7,Böden\n").encode("cp1252"),
        warning=r"read as a Western Windows file \(cp1252\), with 'ö'",
    ),
    "UTF-16": Read(german(*CD).replace(".", ",").encode("utf-16")),
    "UTF-16 without a byte order mark": Read(rows(*CD).encode("utf-16-le")),
    "Excel's separator line": Read("sep=;\n" + german("0,5", "0,7", "0,9", "1,2")),
    "tabs": Read(rows(*CD, header="x\ty\tCd", separator="\t")),
    "bars": Read(rows(*CD, header="x|y|Cd", separator="|")),
    "GeoEAS": Read("Cadmium survey\n3\nx\ny\nCd\n 1.5 0 0.5\n 2.5 1 0.7\n 3.5 2 0.9\n 4.5 0 1.2\n"),
    "a polygon in the first row": Read(
        'geometry,x,y,Cd\n"POLYGON ((' + ", ".join(["10.25 20.75"] * 15_000) + '))",1.5,0,0.5\n'
        '"POINT (1 2)",2.5,1,0.7\n"POINT (1 2)",3.5,2,0.9\n"POINT (1 2)",4.5,0,1.2\n'
    ),
    "ISO dates": Read(
        "x,y,Cd\n1970-01-03,0,0.5\n1970-01-04,1,0.7\n1970-02-01T12:00,2,0.9\n1971-01-01,0,1.2\n",
        x=(2, 3, 31.5, 365),
    ),
    "dates as numbers": Read(
        "x,y,Cd\n19700103,0,0.5\n19700104,1,0.7\n19700201,2,0.9\n19710101,0,1.2\n",
        warning=r"dates written as numbers \(19700103 to 19710101\)",
        x=(2, 3, 31, 365),
    ),
    "minus signs of a word processor": Read(
        rows("−0.5", "0.7", "0.9", "1.2"), (-0.5, 0.7, 0.9, 1.2)
    ),
    "empty and short rows": Read(
        "x,y,Cd\n1.5,0,0.5\n\n2.5,1\n3.5,2,0.9\n", (0.5, NAN, 0.9), x=(1.5, 2.5, 3.5)
    ),
    "text": Refused(
        german("0,500", "high", "0,900", "1,200"),
        "'Cd' of .* in 1 of 4 rows .*the first is 'high' in line 3",
        ("--missing", "high"),
        cadmium=(0.5, NAN, 0.9, 1.2),
    ),
    "above a limit": Refused(
        rows("0.5", ">100", "0.9", "1.2"),
        "'>100' in line 3. It is above a limit of measurement",
        ("--missing", ">100"),
        cadmium=(0.5, NAN, 0.9, 1.2),
    ),
    "only unstated limits": Refused(
        rows("<LOD", "n.a.", "", ""),
        "'<LOD' in line 2. Its detection limit is unknown: write the limit, such as <0.5",
        edit=("<LOD", "<0.5"),
        cadmium=(0.25, NAN, NAN, NAN),
    ),
    "thousands separators": Refused(
        'x,y,Cd\n"1,200.5",0,0.5\n"1,300.5",1,0.7\n"1,400.5",2,0.9\n"1,500.5",0,1.2\n',
        "'1,200.5' in line 2. It has thousands separators",
        ("--decimal", "."),
        x=(1200.5, 1300.5, 1400.5, 1500.5),
    ),
    "a comma of two meanings": Refused(
        'x,y,Cd\n"1,200",0,0.5\n"1,300",1,0.7\n"1,400",2,0.9\n"1,500",0,1.2\n',
        r"Add --decimal , if this is 1\.200, or --decimal \. if it is 1200",
        ("--decimal", "."),
        x=(1200, 1300, 1400, 1500),
    ),
    "two decimal marks in a column": Refused(
        german("0,5", "0.7", "0,9", "1,2"),
        "'0.7' in line 3. Most cells of the column have the other decimal mark: use the same",
        edit=("0.7", "0,7"),
    ),
    "a unit in a cell": Refused(
        rows("0.5", "0.7 mg/kg", "0.9", "1.2"),
        "'0.7 mg/kg' in line 3. Write the number without its unit",
        edit=("0.7 mg/kg", "0.7"),
    ),
    "a row of units": Refused(
        rows(*CD).replace("Cd\n", "Cd\nm,m,mg/kg\n"), "apparently units", ("--missing", "m,mg/kg")
    ),
    "codes that are numbers": Refused(
        "Cadmium survey\n3\nx\ny\nCd\n 1.5 0 0.5\n 2.5 1 -999\n 3.5 2 0.9\n 4.5 0 1.2\n",
        "'Cd' contains -999 .* looks like a code for a missing value",
        ("--missing", "-999"),
        cadmium=(0.5, NAN, 0.9, 1.2),
    ),
    "a title above the header": Refused(
        "Survey of 2024,,\n" + rows(*CD),
        "column names in line 2, .* or put # at the beginning of each",
        edit=("Survey", "# Survey"),
    ),
    "a row that is too long": Refused(
        rows(*CD).replace("0.7\n", "0.7,clay, wet\n"),
        "Line 3 of .* has 5 fields, but the header has 3. .* remove the additional fields",
        edit=(",clay, wet", ""),
    ),
    "another order of days": Refused(
        "x,y,Cd\n03.01.1970,0,0.5\n04.01.1970,1,0.7\n01.02.1970,2,0.9\n01.01.1971,0,1.2\n",
        "'03.01.1970' in line 2. Write dates as 2024-01-31",
        edit=(r"(\d\d)\.(\d\d)\.(\d{4})", r"\3-\2-\1"),
        x=(2, 3, 31, 365),
    ),
    "empty fields that have no name": Read(
        "x,y,Cd\n1.5,0,0.5,,,\n2.5,1,0.7,,,\n3.5,2,0.9,,,\n4.5,0,1.2,,,\n"
    ),
    "UTF-16 without a byte order mark, the larger byte first": Read(rows(*CD).encode("utf-16-be")),
    "more empty fields than names": Read(
        "x,y,Cd\n" + "".join(f"{i + 1.5},{i % 3},{cd},,,,,\n" for i, cd in enumerate(CD))
    ),
    "UTF-32": Read(rows(*CD).encode("utf-32")),
    "a title of one word": Refused(
        "Survey\n\n" + rows(*CD),
        "column names in line 3, but they must come first. .*put # at the beginning",
        edit=("Survey", "# Survey"),
    ),
    "a quotation mark that is not closed": Refused(
        rows('"0.5', *CD[1:]),
        "^emgpr: Line 2 of .* has a quotation mark that is not closed. Remove it",
        edit=('"', ""),
    ),
    "degrees and minutes": Refused(
        "x,y,Cd\n1°30'E,0,0.5\n2°30'E,1,0.7\n3°30'E,2,0.9\n4°30'E,0,1.2\n",
        "Write degrees as decimal numbers, such as 47.5",
        edit=("°30'E", ".5"),
    ),
    "a day that does not exist": Refused(
        "x,y,Cd\n"
        + "".join(f"197001{day:02d},1,{day / 10}\n" for day in range(1, 30))
        + "19700231,1,0.2\n",
        r"19700231 in (line 31|row 29 .counted from 0.) is not a date. Correct it",
        edit=("19700231", "19700131"),
        cadmium=(*(day / 10 for day in range(1, 30)), 0.2),
        x=(*range(29), 30),
    ),
}
READ = {name: table for name, table in TABLES.items() if isinstance(table, Read)}
REFUSED = {name: table for name, table in TABLES.items() if isinstance(table, Refused)}


def read(file, **options):
    """Return x and cadmium as an estimator receives them, and the warnings."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        table = read_table(file, ["x", "y", "Cd"], **options)
        look = EMGPR().first_look(table[["x", "y"]], table[["Cd"]])
    return table, look, [str(warning.message) for warning in issued]


def check(file, case, **options):
    table, look, messages = read(file, **options)
    assert_allclose(table["Cd"], case.cadmium, rtol=1e-12)
    used = ~np.isnan(np.asarray(case.cadmium, dtype=float))
    x = np.asarray(case.x, dtype=float)[used]
    assert_allclose(look.inputs.loc["x", ["least", "greatest"]], [x.min(), x.max()])
    return messages


def write(folder, text):
    file = folder / "t.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_there_are_at_least_thirty():
    assert len(TABLES) >= 30


@pytest.mark.parametrize("name", READ)
def test_a_messy_table_is_read_at_the_first_attempt(tmp_path, name):
    case = READ[name]
    messages = check(write(tmp_path, case.text), case)
    if case.warning:
        assert any(re.search(case.warning, message) for message in messages), messages
    else:
        # Small tables have rows without readings.
        assert not [m for m in messages if not m.startswith("Nothing was measured")], messages


@pytest.mark.parametrize("name", READ)
def test_the_command_reads_it_too(tmp_path, name):
    case = READ[name]
    result = invoke("fit", write(tmp_path, case.text), "-x", "x,y", "-y", "Cd", "--check")
    assert result.exit_code == 0, result.output
    assert re.search(case.warning, " ".join(result.stderr.split()))


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_is_refused_names_a_remedy_that_works(tmp_path, name):
    case = REFUSED[name]
    file = write(tmp_path, case.text)
    command = ("fit", file, "-x", "x,y", "-y", "Cd", "--check")
    result = invoke(*command)
    assert result.exit_code == 3, result.output
    line = result.stderr.splitlines()[-1]
    assert re.search(case.message, line), line
    if case.remedy:
        assert " ".join(case.remedy) in line.replace("'", "")
    if case.edit:
        write(tmp_path, re.sub(case.edit[0], case.edit[1], case.text))
    again = invoke(*command, *case.remedy)
    assert again.exit_code == 0, again.output
    options = dict(zip(case.remedy[::2], case.remedy[1::2], strict=True))
    codes, decimal = options.get("--missing"), options.get("--decimal")
    if name != "a row of units":  # This row has no coordinates; the command leaves it out.
        check(file, case, missing=codes.split(",") if codes else (), decimal=decimal)


@pytest.mark.parametrize("name", ["text", "above a limit", "two decimal marks in a column"])
def test_python_names_the_same_cell(tmp_path, name):
    with pytest.raises(ValueError, match=r"Column 'Cd' of Y .* in row 1 .* to float"):
        read(write(tmp_path, REFUSED[name].text))


def test_the_flags_describe_a_file_that_is_not_detected(tmp_path):
    text = "x:y:Cd µg\n1,5:0:0,5\n2,5:1:0,7\n3,5:0:0,9\n"
    file = write(tmp_path, text.encode("cp437"))
    flags = ("--separator", ":", "--decimal", ",", "--encoding", "cp437")
    result = invoke("fit", file, "-x", "x,y", "-y", "Cd µg", "--check", *flags)
    assert result.exit_code == 0, result.output
    assert "x 1.5 to 3.5" in result.stdout
    assert result.stderr == ""


def test_twenty_thousand_columns_take_about_as_long_as_in_pandas(tmp_path):
    """Less than ten times as long; a quadratic search for repeated names took 16 times as long."""
    file, names = tmp_path / "wide.csv", [f"c{i}" for i in range(20_000)]
    pd.DataFrame(np.ones((2, 20_000)), columns=names).to_csv(file, index=False)
    times = []
    for reader in (pd.read_csv, read_table):
        start = process_time()
        assert reader(file).shape == (2, 20_000)
        times.append(process_time() - start)
    assert times[1] < 10 * times[0]
