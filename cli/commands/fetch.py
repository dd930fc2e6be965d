"""`mnemo fetch`: everything that the embedded system downloads or builds, at installation rather than at first use."""

from typing import Annotated

import typer

from cli.output import print_fields, print_json, say, transfer


def fetch(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Download Kafka's jars and build the local embedding model, where they are not there yet."""
    del ctx
    from cli.embedded.fetch import fetch_all

    with transfer() as progress:
        fetched = fetch_all(progress, (lambda _message: None) if as_json else say)
    if as_json:
        print_json({"kafkaJars": str(fetched.jars), "embeddingModel": str(fetched.model)})
        return
    print_fields([("kafka", fetched.jars), ("embedding model", fetched.model)])
