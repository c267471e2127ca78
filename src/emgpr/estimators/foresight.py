"""What can be said of a fit before it is made: what the table holds, and what it will cost."""

from copy import copy
from typing import Any, cast

from emgpr.estimators.cost import planned
from emgpr.estimators.door import input_names
from emgpr.estimators.entering import Entering
from emgpr.estimators.first_look import FirstLook
from emgpr.estimators.plan import Plan
from emgpr.estimators.settings import check_settings
from emgpr.execution import threads_for
from emgpr.geo import Places
from emgpr.observations import Observations


class Foresight(Entering):
    """What an estimator that is not fitted yet can say of a table."""

    def first_look(self, X: Any, y: Any) -> FirstLook:
        """What a table holds, as `fit` would see it, and what is doubtful about it.

        Nothing is learned. Raises what `fit` would refuse.

        >>> from emgpr import EMGPR
        >>> from emgpr.datasets import jura_table
        >>> jura = jura_table()
        >>> print(EMGPR().first_look(jura.X, jura.Y))
        359 rows; 359 places
        Xloc 0.491 to 4.92, Yloc 0.524 to 5.69
            readings  missing  least  median  greatest          transform
        Cd       259      100  0.135    1.07     5.129  log (first guess)
        Ni       359        0   1.98   20.68      53.2  log (first guess)
        Zn       359        0     25   73.56    259.84  log (first guess)
        """
        check_settings(self)
        model = cast(Any, copy(self))  # what is remembered at the door is not for this one
        inputs, Y, doubts = model._entered(X, y)
        names = input_names(model)
        return FirstLook.at(
            Places.of(names, model.crs).back(inputs),
            Y,
            n_rows=len(model._index),
            names=(names, model.output_names_),
            transform=vars(model)["transform"],
            doubts=doubts,
        )

    def plan(self, X: Any, y: Any) -> Plan:
        """How a fit to this table will be done, and about how long it takes in how much memory.

        Counted from the sizes of the matrices and from how fast this machine factors one of them,
        which is tried: a rough estimate, within a factor of 3 as a rule. It ends with what is
        approximated, step by step, since there are too many readings for all of it to be exact;
        `approximation_report` of the fitted model tells what that costs. Nothing is learned.

        >>> from emgpr import EMGPR
        >>> from emgpr.datasets import jura_table
        >>> jura = jura_table()
        >>> plan = EMGPR().plan(jura.X, jura.Y)
        >>> [(step.name, step.n_readings) for step in plan.steps][-2:]
        [('joint ascent', 977), ('safe transfer', 977)]
        >>> print(plan)
        step ...
        The fit: about ... s and ... MB of memory, within a factor of 3.
        Nothing is approximated.
        """
        check_settings(self)
        model = cast(Any, copy(self))  # what is remembered at the door is not for this one
        inputs, Y, _ = model._entered(X, y)
        seen = Observations.from_table(inputs, Y)
        with threads_for(seen.n_readings):
            return planned(model, seen, Y)
