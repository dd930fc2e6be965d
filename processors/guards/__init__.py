"""Guards of the router: what two statements differ in, however near their vectors are (DESIGN.md §5).

Similarity says nothing about a number, a name or a "not". So only what provably says the same is merged without asking:
the words must agree in their order, but for a short list of writings of one thing ("doesn't", "5,000", "15 October")
and for additions of plain words where an addition takes nothing back. Whatever else differs is a difference.
"""

from processors.guards.comparison import differences, invented, says_more
from processors.guards.kinds import Difference
from processors.guards.merging import forgotten, miscounted, turned_round

__all__ = ["Difference", "differences", "forgotten", "invented", "miscounted", "says_more", "turned_round"]
