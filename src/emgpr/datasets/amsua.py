"""The AMSU-A data: one swath of a microwave sounder."""

import pandas as pd
from sklearn.utils import Bunch

from emgpr.datasets._embedded import description, table


def load_amsua() -> Bunch:
    """14 channels of the satellite sounder AMSU-A at the 630 sites of one swath.

    Returns a Bunch with

    - `X`: data frame of lat, lon (degrees)
    - `Y`: data frame of brightness temperatures (K), ch01 to ch15 without the dead ch07
    - `frame`: all columns, in the order of scan and then field of view: X and Y, and also
      scan, fov (both from 1), satzen (satellite zenith angle, degrees), time (UTC) and its
      parts year, month, day, hour, minute, second
    - `channels`: the names of Y's columns
    - `units`: the unit of each measured column
    - `DESCR`: what the data are and where they come from

    >>> swath = load_amsua()
    >>> swath.X.shape, swath.Y.shape
    ((630, 2), (630, 14))
    >>> swath.frame.loc[0, ["lat", "lon", "ch01"]].tolist()
    [-9.8094, -51.1199, 278.32]
    """
    frame = table("amsua_metopA_20121102.csv.gz")
    frame["time"] = pd.to_datetime(frame[["year", "month", "day", "hour", "minute", "second"]])
    channels = tuple(name for name in frame.columns if name.startswith("ch"))
    return Bunch(
        X=frame[["lat", "lon"]],
        Y=frame[list(channels)],
        frame=frame,
        channels=channels,
        units=dict.fromkeys(("lat", "lon", "satzen"), "degrees") | dict.fromkeys(channels, "K"),
        DESCR=description("AMSU-A"),
    )
