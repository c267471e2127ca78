"""The AMSU-A data: one swath scanned by a microwave sounder on a satellite."""

import pandas as pd
from sklearn.utils import Bunch

from emgpr.datasets.embedded import read_description, read_embedded


def load_amsua() -> Bunch:
    """Load 14 channels of the satellite sounder AMSU-A at 630 sites in one swath.

    Returns a Bunch with

    - `X`: data frame with the columns lat and lon (degrees)
    - `Y`: data frame of brightness temperatures (K), ch01 to ch15, except ch07, which failed
    - `frame`: data frame of all columns, sorted by scan and field of view: the columns of X and Y,
      scan, fov (both from 1), satzen (satellite zenith angle, degrees), time (UTC) and its parts
      year, month, day, hour, minute, second
    - `channels`: names of the columns of Y
    - `units`: unit of each measured column
    - `DESCR`: description of the data and its source

    >>> swath = load_amsua()
    >>> swath.X.shape, swath.Y.shape
    ((630, 2), (630, 14))
    >>> swath.frame.loc[0, ["lat", "lon", "ch01"]].tolist()
    [-9.8094, -51.1199, 278.32]
    """
    frame = read_embedded("amsua_metopA_20121102.csv.gz")
    frame["time"] = pd.to_datetime(frame[["year", "month", "day", "hour", "minute", "second"]])
    channels = tuple(name for name in frame.columns if name.startswith("ch"))
    return Bunch(
        X=frame[["lat", "lon"]],
        Y=frame[list(channels)],
        frame=frame,
        channels=channels,
        units=dict.fromkeys(("lat", "lon", "satzen"), "degrees") | dict.fromkeys(channels, "K"),
        DESCR=read_description("AMSU-A"),
    )
