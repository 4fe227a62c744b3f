"""FastAPI, for uvicorn: odd numbers are answered on the loop, even ones in a thread."""

import known  # noqa: F401
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse
from work import answer

app = FastAPI()


@app.get("/{number}", response_class=PlainTextResponse)
async def sums(number: int):
    """The sum below a number."""
    if number % 2:
        return str(answer(number))
    return str(await run_in_threadpool(answer, number))
