import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from mnemostream.turns import Reason

from processors.errors import ModelTimeout, ModelUnavailable, Rejected, StoreUnavailable
from streams.delivery import Assignment, Limits, Outcome, Retry
from tests.streams.conftest import DeskMaker
from tests.streams.delivery_fakes import record, settle


async def test_records_of_one_key_are_handled_one_after_the_other(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0), record(1), record(2))
    assert desk.handler.offsets_begun == [0]
    desk.handler.end(0)
    await settle()
    assert desk.handler.offsets_begun == [0, 1]


async def test_other_keys_of_the_partition_go_on_meanwhile_and_nothing_is_acked_past_the_slow_one(
    make_desk: DeskMaker,
) -> None:
    desk = make_desk()
    await desk.give(record(0, "slow"), record(1, "b"), record(2, "c"))
    desk.handler.end(1)
    desk.handler.end(2)
    await settle()
    assert desk.acked == []
    desk.handler.end(0)
    await settle()
    assert desk.acked_offsets == [0, 1, 2]


async def test_partitions_are_acked_apart(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0, "slow"), record(7, "b", partition=1))
    desk.handler.end(7, partition=1)
    await settle()
    assert desk.acked == [(1, 7)]


async def test_records_without_a_key_share_the_lane_of_their_partition(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0, None), record(1, None), record(0, None, partition=1))
    assert desk.handler.began == [[(0, 0)], [(1, 0)]]


async def test_no_more_windows_run_at_once_than_allowed_and_lanes_take_turns(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_in_flight=2))
    await desk.give(record(0, "a"), record(1, "a"), record(2, "b"), record(3, "c"))
    assert desk.handler.offsets_begun == [0, 2]
    desk.handler.end(0)
    await settle()
    assert desk.handler.offsets_begun == [0, 2, 3]  # c waited longer than the second of a


async def test_submit_waits_while_too_much_is_in_hand(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_in_flight=1, max_pending=4, max_backlog=1))
    await desk.give(record(0), record(1))
    third = asyncio.ensure_future(desk.lanes.submit(record(2), desk.assignment, list))
    await settle()
    assert not third.done()
    desk.handler.end(0)
    await settle()
    assert third.done()
    assert desk.lanes.pending == 2


async def test_a_hot_key_holds_back_its_own_partition_only(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_lane=2))
    await desk.give(*(record(offset, "hot") for offset in range(10)))
    await desk.give(record(10, "quiet"), record(0, "other", partition=1))
    assert desk.handler.began == [[(0, 0)], [(1, 0)]]
    assert desk.lanes.pending == 12


async def test_a_hot_key_is_bounded_in_bytes_but_one_record_always_fits(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_lane_bytes=100, max_pending_bytes=250))
    await desk.give(record(0, "a", size=1000))
    assert desk.handler.offsets_begun == [0]
    await desk.give(record(1, "a", size=10), record(2, "c", size=10), record(0, "b", partition=1, size=10))
    # The giant fills the whole of the pending bytes: of its own partition nothing more, of others the first.
    assert desk.handler.began == [[(0, 0)], [(1, 0)]]
    desk.handler.end(0)
    await settle()
    assert sorted(desk.handler.began) == [[(0, 0)], [(0, 1)], [(0, 2)], [(1, 0)]]


async def test_no_partition_takes_the_room_of_the_others(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_in_flight=1, max_pending=8, hold_at=2, max_backlog=2))
    await desk.give(*(record(offset, f"hot{offset}") for offset in range(6)))
    assert desk.lanes.pending == 6  # four in lanes, and two before them: it is held
    await desk.give(*(record(offset, f"quiet{offset}", partition=1) for offset in range(2)))
    desk.handler.end(0)
    await settle()
    await desk.give(record(0, "another", partition=2))
    assert desk.lanes.pending == 8
    for partition, offset in [(0, 1), (0, 2), (0, 3), (1, 0)]:
        desk.handler.end(offset, partition)
        await settle()
    assert (1, 1) in desk.handler.running


async def test_partitions_that_are_held_do_not_block_the_way_in(make_desk: DeskMaker) -> None:
    limits = Limits(max_in_flight=1, max_lane=1, hold_at=2, max_backlog=3)
    desk = make_desk(limits=limits)
    for partition in range(4):
        await desk.give(*(record(offset, f"hot{partition}", partition=partition) for offset in range(3)))
    await asyncio.wait_for(desk.give(record(0, "quiet", partition=4)), 5)
    assert desk.lanes.pending == 13


async def test_what_is_finished_and_not_acked_is_bounded_over_all_partitions(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_unacked=8, max_unacked_in_all=6))
    desk.handler.automatic = True
    for partition in range(2):
        desk.handler.at_once[partition, 0] = [StoreUnavailable("away")]
        await desk.give(*(record(offset, f"{partition}-{offset}", partition=partition) for offset in range(6)))
    # Of the first partition six were free while it was alone, of the second three.
    assert [offset for places in desk.handler.began for p, offset in places if p == 1] == [0, 1, 2]


async def test_headers_count_as_bytes(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_lane_bytes=100))
    heavy = [replace(record(offset), headers=(("trace", b"x" * 60),)) for offset in range(3)]
    await desk.give(*heavy, record(0, "other", partition=1))
    assert desk.lanes.pending == 4
    assert heavy[0].size_bytes == 66
    await desk.lanes.close()


async def test_a_partition_with_a_backlog_is_not_fetched_until_half_of_it_is_gone(make_desk: DeskMaker) -> None:
    class Valve:
        def __init__(self) -> None:
            self.calls: list[tuple[str, int]] = []

        def hold(self, topic: str, partition: int) -> None:
            self.calls.append(("hold", partition))

        def release(self, topic: str, partition: int) -> None:
            self.calls.append(("release", partition))

    valve = Valve()
    desk = make_desk(limits=Limits(max_lane=1, hold_at=4), valve=valve)
    await desk.give(*(record(offset, "hot") for offset in range(5)))
    assert valve.calls == [("hold", 0)]
    for offset in range(2):
        desk.handler.end(offset)
        await settle()
    assert valve.calls == [("hold", 0), ("release", 0)]


async def test_a_partition_does_not_run_ahead_of_its_first_unfinished_record_without_bound(
    make_desk: DeskMaker,
) -> None:
    desk = make_desk(limits=Limits(max_unacked=3))
    await desk.give(*(record(offset, f"k{offset}") for offset in range(5)))
    assert desk.handler.offsets_begun == [0, 1, 2]
    desk.handler.end(0)
    await settle()
    assert desk.handler.offsets_begun == [0, 1, 2, 3]


async def test_an_outage_is_waited_out_and_gives_its_slot_back(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_in_flight=1))
    desk.handler.at_once[0, 0] = [ModelUnavailable("down")] * 50
    await desk.give(record(0, "a"), record(1, "b"))
    assert desk.handler.offsets_begun == [0, 1]
    desk.handler.end(1)
    for _ in range(50):
        desk.naps.wake()
        await settle()
    desk.handler.end(0)
    await settle()
    assert desk.acked_offsets == [0, 1]
    assert desk.lot.parked == []
    assert desk.naps.asked[:3] == [0.2, 0.4, 0.8]
    assert max(desk.naps.asked) == 15.0


async def test_a_named_delay_is_honoured(make_desk: DeskMaker) -> None:
    desk = make_desk()
    desk.handler.at_once[0, 0] = [ModelUnavailable("busy", retry_after=timedelta(seconds=20))]
    await desk.give(record(0))
    assert desk.naps.asked == [20.2]


async def test_a_rejected_record_is_parked_and_the_next_goes_on(make_desk: DeskMaker) -> None:
    desk = make_desk()
    desk.handler.at_once[0, 0] = [Rejected(Reason.INVALID_FIELD, "said_at: is missing")]
    await desk.give(record(0), record(1))
    assert desk.lot.parked == [(0, Reason.INVALID_FIELD, "said_at: is missing", 1)]
    desk.handler.end(1)
    await settle()
    assert desk.acked_offsets == [0, 1]
    assert desk.ear.heard == [Outcome.REJECTED, Outcome.PARKED, Outcome.DONE]


async def test_parking_waits_out_an_outage_and_the_record_is_not_handled_again(make_desk: DeskMaker) -> None:
    desk = make_desk()
    desk.handler.at_once[0, 0] = [Rejected(Reason.INVALID_JSON, "value")]
    desk.lot.errors = [StoreUnavailable("down"), RuntimeError("a bug in parking")]
    await desk.give(record(0))
    for _ in range(2):
        assert desk.acked == []
        desk.naps.wake()
        await settle()
    assert desk.lot.parked == [(0, Reason.INVALID_JSON, "value", 1)]
    assert desk.handler.offsets_begun == [0]
    assert desk.acked_offsets == [0]


async def test_an_unforeseen_error_is_tried_again_and_then_parked_with_its_type_and_place_only(
    make_desk: DeskMaker,
) -> None:
    desk = make_desk(retry=Retry(failures=3))
    desk.handler.at_once[0, 0] = [ValueError("a text of somebody")] * 3
    await desk.give(record(0), record(1))
    for _ in range(3):
        desk.naps.wake()
        await settle()
    [(offset, reason, detail, attempts)] = desk.lot.parked
    assert (offset, reason, attempts) == (0, Reason.INTERNAL_ERROR, 3)
    assert detail.startswith("ValueError at delivery_fakes.py:")
    assert desk.handler.offsets_begun == [0, 0, 0, 1]


async def test_an_attempt_that_takes_too_long_is_unavailable(make_desk: DeskMaker) -> None:
    desk = make_desk(retry=Retry(attempt_seconds=0.0))
    await desk.give(record(0))
    async with asyncio.timeout(5):
        await desk.naps.began.wait()
    assert desk.ear.heard == [Outcome.UNAVAILABLE]
    assert desk.lot.parked == []


async def test_a_cancellation_that_leaks_into_a_handler_does_not_wedge_its_lane(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0), record(1))
    desk.handler.running[0, 0].cancel()
    await settle()
    desk.naps.wake()
    await settle()
    desk.handler.end(0)
    await settle()
    desk.handler.end(1)
    await settle()
    assert desk.acked_offsets == [0, 1]


async def test_a_cancelled_attempt_is_made_again(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0), record(1))
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await settle()
    desk.handler.end(0)
    await settle()
    desk.handler.end(1)
    await settle()
    assert desk.acked_offsets == [0, 1]


async def test_what_waits_is_dropped_when_its_assignment_ends_and_what_runs_is_still_acked(
    make_desk: DeskMaker,
) -> None:
    desk = make_desk(limits=Limits(max_lane=2))
    await desk.give(*(record(offset) for offset in range(4)))
    desk.lanes.suspend(desk.assignment)
    assert not await desk.lanes.drain(0)
    assert desk.lanes.pending == 1
    desk.handler.end(0)
    await settle()
    assert desk.acked_offsets == [0]
    assert desk.handler.offsets_begun == [0]
    assert await desk.lanes.drain(0)


async def test_a_closed_assignment_is_never_acked(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0))
    desk.lanes.suspend(desk.assignment)
    desk.assignment.close()
    desk.handler.end(0)
    await settle()
    assert desk.acked == []


async def test_a_redelivered_record_queues_behind_its_first_copy_and_is_acked_without_a_second_reading(
    make_desk: DeskMaker,
) -> None:
    desk = make_desk()
    await desk.give(record(0), record(1))
    desk.lanes.suspend(desk.assignment)
    desk.assignment.close()
    again = Assignment()
    await desk.give(record(0), record(1), to=again)
    assert desk.handler.offsets_begun == [0]
    desk.handler.end(0)
    await settle()
    assert desk.acked_offsets == [0]
    assert desk.handler.offsets_begun == [0, 1]
    assert Outcome.REPEATED in desk.ear.heard


async def test_a_first_copy_that_fails_leaves_the_work_to_the_second(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0))
    desk.lanes.suspend(desk.assignment)
    desk.assignment.close()
    await desk.give(record(0), to=Assignment())
    desk.handler.end(0, error=ModelUnavailable("down"))
    await settle()
    assert desk.naps.asked == []
    desk.handler.end(0)
    await settle()
    assert desk.acked_offsets == [0]


async def test_a_wait_for_the_next_attempt_ends_with_the_assignment(make_desk: DeskMaker) -> None:
    desk = make_desk()
    desk.handler.at_once[0, 0] = [ModelUnavailable("down")]
    await desk.give(record(0))
    desk.lanes.suspend(desk.assignment)
    await settle()
    assert desk.lanes.pending == 0
    assert await desk.lanes.drain(0)


async def test_a_verdict_dies_with_its_record(make_desk: DeskMaker) -> None:
    desk = make_desk()
    desk.handler.at_once[0, 0] = [Rejected(Reason.INVALID_JSON, "value")]
    desk.lot.errors = [StoreUnavailable("down")]
    await desk.give(record(0))
    desk.lanes.suspend(desk.assignment)
    desk.assignment.close()
    await desk.give(record(5), to=Assignment())
    desk.naps.wake()
    await settle()
    desk.handler.end(5)
    await settle()
    assert desk.lot.parked == []
    assert desk.acked_offsets == [5]


async def test_a_record_that_comes_again_while_it_is_in_hand_is_taken_once(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(3), record(3))
    desk.handler.end(3)
    await settle()
    assert desk.acked_offsets == [3]
    assert desk.handler.offsets_begun == [3]


async def test_a_consumer_that_goes_back_loses_nothing_and_acks_stay_in_order(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(5, "a"), record(6, "b"))
    desk.handler.end(5)
    await settle()
    await desk.give(record(4, "c"), record(5, "d"), record(7, "e"))
    desk.handler.end(7)
    desk.handler.end(6)
    await settle()
    assert desk.acked_offsets == [5, 6, 7]
    assert sorted(desk.handler.running) == [(0, 4), (0, 5)]


async def test_a_record_that_is_done_but_not_acked_yet_is_acked_once_when_it_comes_again(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0, "slow"), record(1, "b"))
    desk.handler.end(1)
    await settle()
    await desk.give(record(1, "b"))
    desk.handler.end(0)
    await settle()
    assert desk.acked_offsets == [0, 1]
    assert desk.handler.offsets_begun == [0, 1]


async def test_what_comes_before_a_record_in_hand_is_acked_before_it(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(9, "a"), record(4, "b"))
    desk.handler.end(9)
    await settle()
    assert desk.acked == []
    desk.handler.end(4)
    await settle()
    assert desk.acked_offsets == [4, 9]


async def test_a_window_takes_what_the_policy_says(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_in_flight=1), window=len)
    await desk.give(record(0))
    await desk.give(record(1), record(2))
    assert desk.handler.began == [[(0, 0)]]  # a lone record does not wait for company
    desk.handler.end(0)
    await settle()
    assert desk.handler.began[1:] == [[(0, 1), (0, 2)]]
    desk.handler.end(1)
    await settle()
    assert desk.acked_offsets == [0, 1, 2]


async def test_what_comes_together_is_in_its_lane_before_a_window_is_taken(make_desk: DeskMaker) -> None:
    desk = make_desk(window=len)
    submitting = [desk.lanes.submit(record(offset), desk.assignment, list) for offset in range(3)]
    for each in submitting:
        await each  # there is room: nothing is waited for
    assert desk.handler.began == []
    await settle()
    assert desk.handler.began == [[(0, 0), (0, 1), (0, 2)]]


async def test_a_policy_that_breaks_ends_the_process_and_not_only_the_pump(make_desk: DeskMaker) -> None:
    def broken(records: object) -> int:
        raise RuntimeError("a fault of ours")

    desk = make_desk(window=broken)
    await desk.give(record(0))
    assert [type(error) for error in desk.crashes] == [RuntimeError]


async def test_of_a_refused_window_only_the_poison_is_parked(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_in_flight=1), window=len)
    poison = Rejected(Reason.MODEL_ANSWER_UNUSABLE, "answer")
    desk.handler.at_once[0, 2] = [poison]
    await desk.give(record(0))
    await desk.give(record(1), record(2), record(3))
    desk.handler.end(0)
    await settle()
    desk.handler.end(1, error=poison)
    await settle()
    desk.handler.end(1)
    await settle()
    assert [offset for offset, *_ in desk.lot.parked] == [2]
    desk.handler.end(3)
    await settle()
    assert desk.acked_offsets == [0, 1, 2, 3]
    assert desk.handler.began == [[(0, 0)], [(0, 1), (0, 2), (0, 3)], [(0, 1)], [(0, 2)], [(0, 3)]]


async def test_a_window_that_is_too_much_for_its_time_is_halved_and_grows_again(make_desk: DeskMaker) -> None:
    desk = make_desk(limits=Limits(max_in_flight=1), window=len)
    desk.handler.at_once[0, 1] = [ModelTimeout("too slow"), ModelTimeout("too slow")]
    await desk.give(record(0))
    await desk.give(*(record(offset) for offset in range(1, 9)))
    desk.handler.automatic = True
    desk.handler.end(0)
    await settle()
    for _ in range(8):
        desk.naps.wake()
        await settle()
    assert [len(places) for places in desk.handler.began] == [1, 8, 4, 2, 4, 2]
    assert desk.acked_offsets[-1] == 8


async def test_close_cancels_what_runs_and_leaves_it_unacked(make_desk: DeskMaker) -> None:
    desk = make_desk()
    await desk.give(record(0), record(1, "b"))
    await desk.lanes.close()
    await desk.give(record(2, "c"))
    assert desk.acked == []
    assert desk.handler.running == {}
    assert desk.handler.offsets_begun == [0, 1]


async def test_the_oldest_unfinished_record_is_told(make_desk: DeskMaker) -> None:
    desk = make_desk()
    assert desk.lanes.oldest_unfinished() is None
    await desk.give(record(5, "a"), record(6, "b"), record(3, "c", partition=1))
    assert desk.lanes.oldest_unfinished() == record(3).received_at
    desk.handler.end(3, partition=1)
    await settle()
    assert desk.lanes.oldest_unfinished() == record(5).received_at


async def test_an_ack_that_fails_is_not_swallowed(make_desk: DeskMaker) -> None:
    desk = make_desk()

    def broken() -> None:
        raise RuntimeError("no consumer")

    await desk.lanes.submit(record(0), desk.assignment, broken)
    await settle()
    desk.handler.end(0)
    await settle()
    assert [type(error) for error in desk.crashes] == [RuntimeError]


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 0.2), (2, 0.4), (7, 12.8), (8, 15.0), (10_000, 15.0)])
def test_backoff_doubles_up_to_its_cap(attempt: int, seconds: float) -> None:
    assert Retry().delay(attempt, uniform=lambda: 1.0) == pytest.approx(seconds)
    assert Retry().delay(attempt, uniform=lambda: 0.0) == pytest.approx(seconds / 2)
