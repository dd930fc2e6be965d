import time
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122, UUID

from mnemostream.ids import new_turn_id, uuid7


def test_an_id_is_a_uuid_of_version_7_that_holds_the_time_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, RFC_4122)
    # Ids made in the same millisecond may run ahead by one.
    assert before <= made.int >> 80 <= after + 1


def test_ids_of_a_process_only_grow_however_many_in_a_millisecond() -> None:
    made = [uuid7() for _ in range(20_000)]
    assert made == sorted(set(made))


def test_ids_of_several_threads_differ() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: [uuid7() for _ in range(2_000)], range(4)))
    assert len({one for part in made for one in part}) == 8_000
    assert all(part == sorted(part) for part in made)


def test_a_turn_id_is_the_text_of_one() -> None:
    assert UUID(new_turn_id()).version == 7
