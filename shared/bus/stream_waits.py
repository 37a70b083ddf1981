"""Waits for what setting up NATS makes: on a first start services may be quicker than that."""

import asyncio
import logging
from typing import Final

from shared.bus.connection import Bus, StreamInfo
from shared.bus.errors import ApiRefused
from shared.bus.jetstream_api import STREAM_NOT_FOUND

logger = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 0.5


async def stream_there(bus: Bus, stream: str) -> StreamInfo:
    """What a stream holds, once there is such a stream; waits for ever for that.

    Raises:
        ApiRefused: JetStream refuses for another reason.
        NoAnswer: It did not answer.
    """
    told = False
    while True:
        try:
            return await bus.stream_info(stream)
        except ApiRefused as error:
            if error.err_code != STREAM_NOT_FOUND:
                raise
        if not told:
            logger.warning("there is no stream %s yet: waiting until NATS is set up", stream)
            told = True
        await asyncio.sleep(_LOOK_EVERY_S)
