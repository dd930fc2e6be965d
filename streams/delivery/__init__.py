"""Delivery: every record is handled until it is done or parked, and nothing is acked past what is not.

Knows nothing of Faust, of a Kafka client or of Postgres. A `Lanes` takes records with the `Assignment` that they came
with, runs one handler at a time for each key, and acks the finished prefix of each partition in offset order.

    lanes = Lanes(handle, park, limits=Limits(), retry=Retry())
    assignment = Assignment()
    await lanes.submit(record, assignment, ack)     # waits when there is enough in hand: back-pressure
    assignment.suspend(); await lanes.drain(5); assignment.close()      # at a rebalance
"""

from streams.delivery._assignment import Ack, Assignment, Delivery
from streams.delivery._intake import Intakes, Limits, Valve
from streams.delivery._lanes import Handle, LaneOf, Lanes, Park, WindowPolicy, key_lane, windows_of_one
from streams.delivery._observer import Observer, Outcome, Silent
from streams.delivery._record import Record
from streams.delivery._retry import Retry

__all__ = [
    "Ack",
    "Assignment",
    "Delivery",
    "Handle",
    "Intakes",
    "LaneOf",
    "Lanes",
    "Limits",
    "Observer",
    "Outcome",
    "Park",
    "Record",
    "Retry",
    "Silent",
    "Valve",
    "WindowPolicy",
    "key_lane",
    "windows_of_one",
]
