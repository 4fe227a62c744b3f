"""The lab: published experiments about the GIL, run again on every interpreter, then and now.

    experiment    what an experiment is: its question, its published figures, its cells
    experiments   one file each
    workloads     the programs that are measured: single files for every Python, never imported
    conditions    under what: a policy, some cores
    workload      running one, with recording and system_calls for what it cannot say itself
    results       what was measured, as JSON; written after each cell
    runs          the cells of a plan, one after the other, without those that are done
    disturbance   how much of the machine others took meanwhile
    text          what came out, for a terminal
    chart, units  charts as data
    findings      what came out: a sentence, three figures and charts, one file each
    drawing       charts as SVG
    page          what came out, for a browser

A cell is the smallest thing that is run and saved: one experiment on one interpreter in one
variant. Nothing here is imported by any other command.
"""
