"""What operators set for an app."""

from typing import Any

import pytest

from processors.errors import InvalidRequest
from processors.records import AppProfile, Category
from store.apps import AppRepository
from store.database import Database


@pytest.fixture
def apps(operator: Database) -> AppRepository:
    return AppRepository(operator)


async def test_an_app_is_made_with_what_is_given_and_defaults_for_the_rest(apps: AppRepository) -> None:
    categories = (Category("pet", "30d", "Animals that they keep."), Category("diet"))
    made = await apps.configure("acme", time_zone="Europe/Lisbon", categories=categories)
    assert made == AppProfile("Europe/Lisbon", "english", None, (categories[1], categories[0]))
    assert await apps.profile("acme") == made


async def test_what_is_not_given_stays_as_it_was(apps: AppRepository) -> None:
    pet = Category("pet", "slow")
    await apps.configure("acme", time_zone="Asia/Tokyo", language="german", instructions="Du.", categories=[pet])
    whole = AppProfile("Asia/Tokyo", "german", "Du.", (pet,))
    assert await apps.configure("acme") == whole
    assert await apps.configure("acme", instructions="") == AppProfile("Asia/Tokyo", "german", None, (pet,))
    assert await apps.configure("acme", categories=[]) == AppProfile("Asia/Tokyo", "german", None, ())


async def test_all_apps_are_listed_with_what_they_set(apps: AppRepository) -> None:
    await apps.configure("zeta", language="simple")
    await apps.configure("acme")
    assert await apps.list_profiles() == {"acme": AppProfile(), "zeta": AppProfile(language="simple")}
    assert await apps.list() == ("acme", "zeta")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"language": "klingon"}, "language"),
        ({"language": "german; DROP TABLE app"}, "language"),
        ({"language": ""}, "language"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"time_zone": "../../etc/passwd"}, "time_zone"),
        ({"categories": [Category("pet", "sometimes")]}, "categories"),
        ({"categories": [Category("pet"), Category("pet", "slow")]}, "categories"),
        ({"categories": [Category("")]}, "categories"),
    ],
    ids=repr,
)
async def test_what_breaks_a_rule_is_refused_and_nothing_is_set(
    apps: AppRepository, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await apps.configure("acme", **given)
    assert refused.value.field == field
    assert await apps.list() == ()


async def test_a_worker_cannot_list_apps(worker: Database, apps: AppRepository) -> None:
    await apps.configure("acme")
    assert await AppRepository(worker).list_profiles() == {}


@pytest.mark.parametrize("app", ["", "Acme", "-a", "a" * 64, "a\n"])
async def test_what_is_no_app_s_name_is_refused(apps: AppRepository, app: str) -> None:
    with pytest.raises(InvalidRequest, match="app: must be"):
        await apps.configure(app)
