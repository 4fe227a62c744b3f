"""What works on which system: `make platforms` tries it, and docs/platforms.md tells it.

A *row* is an interpreter in a system, maybe in a narrow place. `systems` makes the systems' roots,
`interpreters` says what runs in them, `rows` puts both together, `room` runs words in a root,
`checks` tries and judges, `page` writes the table of what was kept.
"""
