"""An arbitrator in this process: it says what it was told to say."""

import asyncio
from dataclasses import dataclass, field
from uuid import UUID

from processors.arbitration import ArbitrationAnswer, ArbitrationRequest, Judgement
from processors.errors import ModelUnavailable
from processors.facts import Reading
from processors.routing import Action


@dataclass(slots=True)
class FakeArbitrator:
    """The port `Arbitrator`: judgements by the known text; what is not there can stand."""

    says: dict[str, Judgement] = field(default_factory=dict)
    fails: Exception | None = None
    hangs: bool = False
    requests: list[ArbitrationRequest] = field(default_factory=list)

    def judge(self, known: str, action: Action, text: str | None = None) -> None:
        """From now on this is said of every pair with `known`."""
        self.says[known] = Judgement(action, f"because of {action.lower()}", text)

    async def arbitrate(self, request: ArbitrationRequest) -> ArbitrationAnswer:
        self.requests.append(request)
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails is not None:
            raise self.fails
        judgements: list[dict[UUID, Judgement]] = [
            {offered.memory_id: self.says[offered.text] for offered in question.offered if offered.text in self.says}
            for question in request.questions
        ]
        return ArbitrationAnswer(tuple(judgements), Reading(model="judge", prompt_version="judge.v1", tokens_in=7))


def away() -> ModelUnavailable:
    """A model that cannot be reached."""
    return ModelUnavailable("the model is away")
