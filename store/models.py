"""The embedding models that ever wrote vectors here, by a short key."""

from typing import Final, LiteralString

from processors.errors import MnemoError
from processors.vectors import EmbeddingModel
from store.database import Database

# $1 name
_FIND: Final[LiteralString] = """
    SELECT model_key, dimensions, auto_merge_threshold, arbitration_threshold
    FROM embedding_model
    WHERE name = $1
"""

# $1 name, $2 dimensions, $3 auto-merge threshold, $4 arbitration threshold
_ADD: Final[LiteralString] = """
    INSERT INTO embedding_model (name, dimensions, auto_merge_threshold, arbitration_threshold)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (name) DO NOTHING
"""

# $1 key, $2 auto-merge threshold, $3 arbitration threshold
_RETHINK: Final[LiteralString] = """
    UPDATE embedding_model
    SET auto_merge_threshold = $2, arbitration_threshold = $3
    WHERE model_key = $1
        AND (auto_merge_threshold, arbitration_threshold) IS DISTINCT FROM ($2::real, $3::real)
"""


class ModelMismatch(MnemoError):
    """A model of that name has vectors of another length here."""


class ModelKeys:
    """The keys of models, found once a process: they are never given out anew."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keys: dict[EmbeddingModel, int] = {}

    async def key(self, model: EmbeddingModel) -> int:
        """The key of `model`, which is noted if it is new; its thresholds, as they are set now, are kept with it.

        Raises ModelMismatch where a model of that name has vectors of another length, and StoreUnavailable. Called at
        the start of a process, so that a change of settings is refused there and no turn is parked for it.
        """
        known = self._keys.get(model)
        if known is not None:
            return known
        async with self._database.across() as connection:
            row = await connection.fetchrow(_FIND, model.name)
            if row is None:
                # Looked up first, not inserted blindly: each try would use up one of 32,767 keys.
                await connection.execute(
                    _ADD, model.name, model.dimensions, model.auto_merge_threshold, model.arbitration_threshold
                )
                row = await connection.fetchrow(_FIND, model.name)
            assert row is not None
            if row["dimensions"] != model.dimensions:
                raise ModelMismatch(
                    f"the vectors of {model.name} here have {row['dimensions']} dimensions, not {model.dimensions}: "
                    "vectors of another length need another name (MNEMO_EMBEDDING_DIMENSIONS)"
                )
            key: int = row["model_key"]
            await connection.execute(_RETHINK, key, model.auto_merge_threshold, model.arbitration_threshold)
        self._keys[model] = key
        return key
