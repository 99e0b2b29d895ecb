from __future__ import annotations

from planting import Flaw

from planted_flaws.one_trial import hidden

FLAWS = (
    Flaw("3 % hidden by one trial 60 % off", 20, hidden(0.03, 0.6)),
    Flaw("1.5 % hidden by one trial 200 % off", 100, hidden(0.015, 2.0)),
)
