"""The gallery: real programs, one a file, each with what is measured of it.

A program is what a user of its packages would write, in `programs/`, and is the same for every
variant. What asks it is in `loads/`. To add a case, write its file and name it here.
"""

from gallery_runs import Case

from cases import (
    aiohttp_executor,
    apscheduler_jobs,
    dask_worker,
    fastapi_endpoints,
    gunicorn_gthread,
    ipykernel_notebook,
    paramiko_sessions,
    prometheus_scrape,
    tk_window,
    tornado_executor,
    waitress_flask,
)

_MODULES = (
    aiohttp_executor,
    fastapi_endpoints,
    gunicorn_gthread,
    waitress_flask,
    tornado_executor,
    prometheus_scrape,
    ipykernel_notebook,
    dask_worker,
    tk_window,
    apscheduler_jobs,
    paramiko_sessions,
)

CASES: dict[str, Case] = {module.CASE.name: module.CASE for module in _MODULES}
