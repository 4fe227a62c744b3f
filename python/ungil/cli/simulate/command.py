"""`ungil simulate`: what a recorded program would have met under other rules."""

from __future__ import annotations

import json
import sys

import click

from ungil._native import Demands
from ungil.cli.command import Command
from ungil.cli.completing import files, policies
from ungil.cli.report.unfinished import blamed, readable, say_cut
from ungil.cli.simulate.answer import Answer, Listed
from ungil.cli.simulate.rules import Choice, Rules, chosen
from ungil.cli.simulate.screen import print_answers
from ungil.cli.streams import end_with_reader, say
from ungil.errors import Error, UsageError
from ungil.formatting import printable

EXAMPLES = """\
  ungil simulate ungil-app.pftrace                       which policy would help, and by how much?
  ungil simulate ungil-app.pftrace --policy interactive  one of them, thread by thread
  ungil simulate ungil-app.pftrace --interval 0.05       sys.setswitchinterval(0.00005)
  ungil simulate ungil-app.pftrace --without 'report-*'  if that ran in another process
  ungil simulate ungil-app.pftrace --threads 'worker-*=x2' --policy fair
                                                         if these had twice the work
  ungil simulate ungil-app.pftrace --no-gil --cores 8    a free-threaded build
"""

SCHEMA = 1
"""Of what --json prints."""


@click.command(cls=Command, name="simulate", examples=EXAMPLES)
@click.argument("file", shell_complete=files)
@click.option(
    "--policy",
    metavar="NAME",
    shell_complete=policies,
    help="Scheduling policy [default: as recorded].",
)
@click.option("--quantum", metavar="MS", help="Time slice [default: that of the policy].")
@click.option("--interval", metavar="MS", help="CPython's own rules, with this switch interval.")
@click.option(
    "--no-gil", is_flag=True, help="No GIL: as many threads run at once as there are processors."
)
@click.option(
    "--cores",
    metavar="N",
    help="Processors [default: as in the recording; with --no-gil those that the recorded "
    "process may use].",
)
@click.option(
    "--threads",
    "changes",
    metavar="PATTERN=CHANGE",
    multiple=True,
    help="x2: threads whose names match do twice the work; *2: there are twice as many.",
)
@click.option(
    "--without", metavar="PATTERN", multiple=True, help="Leave out threads whose names match."
)
@click.option(
    "--priority",
    "priorities",
    metavar="PATTERN=LEVEL",
    multiple=True,
    help="Level (low, normal or high) of threads whose names match. The first match wins.",
)
@click.option(
    "--once", is_flag=True, help="Let each thread do its work once, and say how long that takes."
)
@click.option(
    "--process", metavar="PID", help="The process [default: the one whose threads waited most]."
)
@click.option("--gil", metavar="NUMBER", help="The GIL of that process [default: likewise].")
@click.option("--runs", metavar="N", default="3", show_default=True, help="Number of simulations.")
@click.option(
    "--seed", metavar="N", default="0", show_default=True, help="Seed of the random numbers."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) instead of tables.")
def command(
    file: str, process: str | None, gil: str | None, as_json: bool, **options: object
) -> None:
    """Replay the trace FILE under other rules, and say how long threads would wait.

    ungil's own schedulers decide, in simulated time, who gets the GIL; when threads want it, and
    how long they use it, is what the trace recorded. Without a rule, ungil compares the
    policies that need no levels.
    """
    rules = Rules.read(options)
    file = readable(file)
    with blamed(file):
        demands = Demands(file)
    say_cut(demands.cut)
    listed: list[Listed] = json.loads(demands.listed())
    choice = chosen(listed, process, gil, file)
    answers = [_answer(demands, choice, one) for one in rules.alternatives(choice)]
    end_with_reader()
    if as_json:
        if demands.cut is not None:
            for answer in answers:
                answer["notes"].insert(0, demands.cut)
        print(json.dumps({"schema": SCHEMA, "predictions": answers}))
        return
    others = len(listed) - 1
    print_answers(answers, others, sys.stdout)


def _answer(demands: Demands, choice: Choice, rules: Rules) -> Answer:
    """What the simulation says; ungil.errors.Error if there is no answer."""
    if sys.stderr.isatty():
        say(f"simulating {printable(rules.name(choice))}")
    try:
        text = demands.predict(choice.index, **rules.arguments(choice))
    except ValueError as error:
        raise UsageError(str(error)) from error
    except MemoryError as error:
        raise Error(str(error)) from error
    answer: Answer = json.loads(text)
    return answer
