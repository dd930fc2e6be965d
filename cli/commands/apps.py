"""Applications, and what each sets for itself: time zone, language, instructions, categories."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.context import settings_of
from cli.failures import CommandFailed, UsageProblem
from cli.operators import with_database
from cli.output import print_fields, print_json, print_table

if TYPE_CHECKING:
    from processors.records import AppProfile, Category
    from store.database import Database

MAX_INSTRUCTIONS: Final = 4_000
MAX_CATEGORIES: Final = 30
MAX_DESCRIPTION: Final = 300
"""Characters. They are part of every prompt of the app."""

JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]
AppArgument = Annotated[str, typer.Argument(metavar="APP", help="Its name.")]

_CATEGORY_NAME: Final = "[a-z][a-z0-9_-]{0,63}"

apps = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@apps.callback()
def _apps() -> None:
    """The applications that use this system, and what each sets for itself. A key makes its app."""


@apps.command("list")
def list_apps(ctx: typer.Context, as_json: JsonOption = False) -> None:
    """All applications."""
    from store.apps import AppRepository

    profiles = with_database(settings_of(ctx), lambda database: AppRepository(database).list_profiles())
    if as_json:
        print_json({"apps": [_as_json(app, profile) for app, profile in profiles.items()]})
        return
    print_table(
        ("app", "time zone", "language", "categories", "instructions"),
        [
            (
                app,
                profile.time_zone,
                profile.language,
                len(profile.categories),
                f"{len(profile.instructions)} characters" if profile.instructions else "",
            )
            for app, profile in profiles.items()
        ],
    )


@apps.command("show")
def show_app(ctx: typer.Context, app: AppArgument, as_json: JsonOption = False) -> None:
    """What an application has set."""
    from store.apps import AppRepository

    profiles = with_database(settings_of(ctx), lambda database: AppRepository(database).list_profiles())
    if app not in profiles:
        raise CommandFailed("no app by that name: `mnemo apps list` shows them")
    _print(app, profiles[app], as_json=as_json)


@apps.command("set")
def set_app(
    ctx: typer.Context,
    app: AppArgument,
    time_zone: Annotated[
        str | None, typer.Option(help="IANA name, such as Europe/Lisbon: days are meant in it.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="Of text search: english, portuguese, simple …")] = None,
    instructions: Annotated[str | None, typer.Option(help="Added to the prompt that reads turns; '' for none.")] = None,
    instructions_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The same, from a file.")] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FADING:TEXT", help="Fading: never, slow, medium, fast, 30d. May be given again."),
    ] = None,
    remove_category: Annotated[list[str] | None, typer.Option(metavar="NAME", help="May be given again.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Set what is given and leave the rest; an app that is new is made.

    A category is `name=fading:description`: the description tells the model what belongs in it, the fading how fast it
    is forgotten (never, slow 0.5 % a day, medium 5 %, fast 28 %, or a half-life such as 30d). A built-in category's
    name gives that one another fading. Memories that exist keep theirs.
    """
    from mnemostream.decoding import APP_PATTERN

    from processors.errors import InvalidRequest

    if not re.fullmatch(APP_PATTERN, app):
        raise UsageProblem(f"APP: must match {APP_PATTERN}")
    _check_time_zone(time_zone)
    words = _instructions(instructions, instructions_file)
    added = [_category(given) for given in category or ()]
    removed = list(remove_category or ())
    if time_zone is None and language is None and words is None and not added and not removed:
        raise UsageProblem("nothing to set: give --time-zone, --language, --instructions, --category, …")

    async def configure(database: "Database") -> "AppProfile":
        from store.apps import AppRepository

        repository = AppRepository(database)
        own = None
        if added or removed:
            own = _merged((await repository.profile(app)).categories, added, removed)
        try:
            return await repository.configure(
                app, time_zone=time_zone, language=language, instructions=words, categories=own
            )
        except InvalidRequest as error:
            raise UsageProblem(f"--{error.field.replace('_', '-')}: {error.rule}") from None

    _print(app, with_database(settings_of(ctx), configure), as_json=as_json)


def _check_time_zone(name: str | None) -> None:
    from mnemostream.errors import InvalidTurn
    from mnemostream.fields import time_zone

    try:
        time_zone(name)
    except InvalidTurn:
        raise UsageProblem("--time-zone: must be an IANA name such as Europe/Lisbon") from None


def _instructions(text: str | None, file: Path | None) -> str | None:
    """None: not given. Empty: there shall be none."""
    if text is not None and file is not None:
        raise UsageProblem("--instructions, --instructions-file: give one of them")
    option = "--instructions"
    if file is not None:
        option = "--instructions-file"
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            raise UsageProblem(f"{option}: must be UTF-8") from None
        except OSError as error:
            raise UsageProblem(f"{option}: {error.strerror or 'cannot be read'}") from None
    if text is None:
        return None
    text = text.strip()
    if len(text) > MAX_INSTRUCTIONS:
        raise UsageProblem(f"{option}: must have at most {MAX_INSTRUCTIONS} characters, has {len(text)}")
    return _without_nul(option, text)


def _category(given: str) -> "Category":
    """`name=fading:description`; the description may be left out with its colon."""
    from processors.fading import fading_of
    from processors.records import Category

    name, equals, rest = given.partition("=")
    fading, _, description = rest.partition(":")
    name, fading, description = name.strip(), fading.strip(), " ".join(description.split())
    if not equals:
        raise UsageProblem("--category: must be NAME=FADING:DESCRIPTION, such as diet=slow:what somebody eats")
    if not re.fullmatch(_CATEGORY_NAME, name):
        raise UsageProblem(f"--category: the name must match {_CATEGORY_NAME}")
    try:
        fading_of(fading)
    except ValueError as error:
        raise UsageProblem(f"--category: the fading of {name} {error}") from None
    if len(description) > MAX_DESCRIPTION:
        rule = f"must have at most {MAX_DESCRIPTION} characters, has {len(description)}"
        raise UsageProblem(f"--category: the description of {name} {rule}")
    return Category(name, fading, _without_nul("--category", description))


def _without_nul(option: str, text: str) -> str:
    if "\0" in text:
        raise UsageProblem(f"{option}: must not hold NUL")
    return text


def _merged(known: "Iterable[Category]", added: "Iterable[Category]", removed: Sequence[str]) -> "tuple[Category, ...]":
    """`known` without `removed` and with `added`, the last of a name. What is not described keeps its description."""
    categories = {each.name: each for each in known}
    for name in removed:
        if categories.pop(name, None) is None:
            raise UsageProblem("--remove-category: the app has no category of its own by that name")
    for given in added:
        each, before = given, categories.get(given.name)
        if before is not None and not each.description:
            each = replace(before, fading=each.fading)
        categories[each.name] = each
    if len(categories) > MAX_CATEGORIES:
        raise UsageProblem(f"--category: an app has at most {MAX_CATEGORIES} of its own, these are {len(categories)}")
    return tuple(categories.values())


def _print(app: str, profile: "AppProfile", *, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(app, profile))
        return
    print_fields(
        [
            ("app", app),
            ("timeZone", profile.time_zone),
            ("language", profile.language),
            ("instructions", profile.instructions),
            *(("category", _shown(each)) for each in profile.categories),
        ]
    )


def _shown(category: "Category") -> str:
    return f"{category.name}={category.fading}:{category.description}".rstrip(":")


def _as_json(app: str, profile: "AppProfile") -> dict[str, Any]:
    return {
        "app": app,
        "timeZone": profile.time_zone,
        "language": profile.language,
        "instructions": profile.instructions or "",
        "categories": [
            {"name": each.name, "fading": each.fading, "description": each.description} for each in profile.categories
        ],
    }
