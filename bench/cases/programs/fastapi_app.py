"""FastAPI: endpoints of both kinds. `uvicorn fastapi_app:app` serves them."""

from computing import compute
from fastapi import FastAPI

app = FastAPI()


@app.get("/sync")
def small_in_a_thread() -> dict[str, str]:
    """FastAPI calls it in a thread of its pool."""
    return {"status": "ok"}


@app.get("/async")
async def small_on_the_loop() -> dict[str, str]:
    """Answered by the loop."""
    return {"status": "ok"}


@app.get("/compute")
def computed_in_a_thread() -> dict[str, int]:
    """Computed in a thread of the pool."""
    return {"total": compute()}


@app.get("/compute-on-the-loop")
async def computed_on_the_loop() -> dict[str, int]:
    """A mistake, and a common one: nothing else is answered meanwhile."""
    return {"total": compute()}
