"""The arbitrator that asks no model."""

import time

from processors.arbitration import ArbitrationAnswer, ArbitrationRequest
from processors.facts import Reading
from processors.local_arbitration import PROMPT_VERSION, judge


class LocalArbitrator:
    """`processors.arbitration.Arbitrator` by slot and guards alone (`processors.local_arbitration`).

    Its answers say `local-rules`.
    """

    async def arbitrate(self, request: ArbitrationRequest) -> ArbitrationAnswer:
        """As `Arbitrator.arbitrate`; raises nothing of its own."""
        began = time.perf_counter()
        judgements = tuple(judge(question) for question in request.questions)
        elapsed = time.perf_counter() - began
        reading = Reading(model="local-rules", prompt_version=PROMPT_VERSION, latency_seconds=elapsed)
        return ArbitrationAnswer(judgements, reading)
