//! Puts a page together: what was collected becomes tables, and the summary says where they are.

use super::bounded::{GILS, fewer_looks, leave_out, shorten};
use super::buckets::Buckets;
use super::collected::{Collected, ThreadFacts};
use super::gil::{Gil, Scale};
use super::sleeps::add_sleeps;
use super::stacks::{cut, packed};
use super::summary::{
    Busy, Chunk, FORMAT, Gil as GilSummary, Head, Lanes, LanesBlock, Level, Missing, Process,
    Sleeps, Summary,
};
use super::table::{Blocks, Bytes, characters};
use crate::analysis::Place;
use crate::record::ProcessId;
use crate::report::{Evidence, GilReport, ProcessReport, Report};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io;

/// Characters of the summary without what is listed for each chunk, at least, and for each chunk.
const SUMMARY: usize = 100_000;
const OF_CHUNK: usize = 400;
/// Rows of the finest levels, over all GILs.
const LEVEL_ROWS: usize = 600_000;
/// A row takes about a quarter of this in all levels together, and levels a quarter of the page.
const CHARACTERS_A_ROW: usize = 48;
/// Holds that make a row worth having.
const HOLDS_A_ROW: usize = 4;
const FEWEST_ROWS: usize = 2_000;
/// Buckets of the first picture, and of the coarsest level.
const BUSY: u64 = 512;
const COARSEST: u64 = 128;
/// A look stands for so much of the time of each waiter at most. The recorder looks four times as
/// often, unless the machine is busy.
const LOOK_FOR_NS: u64 = 200_000_000;
/// Characters of a name.
const NAME: usize = 80;

/// A page that is being put together.
#[derive(Debug)]
pub(super) struct Page<'a> {
    source: &'a str,
    blame_after_ns: u64,
    advised: Option<&'a Value>,
    bounds: Vec<String>,
    blocks: Blocks,
}

/// A GIL with what the report tells of it.
struct Told<'a> {
    place: Place,
    process: usize,
    in_report: Option<usize>,
    report: Option<&'a GilReport>,
}

impl<'a> Page<'a> {
    pub(super) fn new(source: &'a str, blame_after_ns: u64, advised: Option<&'a Value>) -> Self {
        Self { source, blame_after_ns, advised, bounds: Vec::new(), blocks: Blocks::default() }
    }

    /// The summary as JSON, and the blocks. They take at most `room` characters, unless what is
    /// never left out takes more.
    pub(super) fn assemble(
        mut self,
        mut collected: Collected,
        mut report: Report,
        room: usize,
    ) -> io::Result<(String, Vec<Bytes>)> {
        self.bounds = shorten(&mut report);
        let full_report = self.blocks.add_json(&report)?;
        let mut gils = self.chosen(&mut collected, &report, room);
        if fewer_looks(&mut gils) || collected.lost_looks > 0 {
            let text = "the page leaves out the stacks of the holds that cost other threads least";
            self.bounds.push(text.into());
        }
        let tables = collected.stacks.tables();
        let stacks = tables.map(|tables| self.blocks.add_json(&tables)).transpose()?;
        let scale = collected.scale();
        let (mut sleeps, sleeps_from) = add_sleeps(&mut self.blocks, &collected, |process| {
            process_in(&report, &collected, process)
        });
        let end = scale.at(collected.end_ns());
        let mut summaries = Vec::new();
        let mut told = Vec::new();
        for (place, gil) in &mut gils {
            let Some(it) = tell(*place, &report, &collected) else { continue };
            summaries.push(self.gil(gil, &it, &report, &collected, end)?);
            told.push(it);
        }
        let process_of: HashMap<_, _> = told.iter().map(|it| (it.place, it.process)).collect();
        gils.retain(|(place, _)| process_of.contains_key(place));
        let is_whole = self.choose_chunks(&mut gils, &told, &report, &collected, room);
        for (summary, (_, gil)) in summaries.iter_mut().zip(gils) {
            self.chunks(summary, gil, scale);
        }
        let summary = Summary {
            format: FORMAT,
            made_by: concat!("ungil ", env!("CARGO_PKG_VERSION")),
            source: self.source,
            unit_ns: scale.unit_ns,
            end,
            offset_s: scale.base_ns.saturating_sub(collected.span.started_ns()) as f64 / 1e9,
            blame_after_ms: self.blame_after_ns as f64 / 1e6,
            report: Head {
                schema: report.schema,
                python: &report.python,
                duration_s: report.duration_s,
                lost_events: report.lost_events,
                findings: &report.findings,
                notes: &report.notes,
                started_at: report.started_at.as_deref(),
                part: report.part.as_ref(),
                other_processes: report.other_processes,
            },
            full_report,
            processes: (report.processes.iter().enumerate())
                .map(|(index, it)| process(it, &report.processes, sleeps.remove(&index)))
                .collect(),
            gils: summaries,
            stacks,
            advised: self.advised,
            is_whole,
            lost_share: report.lost_share,
            sleeps_from,
            bounds: self.bounds,
        };
        Ok((serde_json::to_string(&summary)?, self.blocks.0))
    }

    /// The GILs that the page has data of, most waited first.
    fn chosen(
        &mut self,
        collected: &mut Collected,
        report: &Report,
        room: usize,
    ) -> Vec<(Place, Gil)> {
        let mut gils = std::mem::take(&mut collected.gils);
        let all = gils.len() + collected.forgotten_gils;
        gils.retain(|(place, gil)| {
            gil.lanes.len() > 1 && tell(*place, report, collected).is_some()
        });
        gils.sort_by_key(|(place, gil)| {
            let [held_ns, waited_ns] = gil.weight_ns;
            (std::cmp::Reverse((waited_ns, held_ns)), *place)
        });
        if all > GILS {
            gils.truncate(GILS);
            self.bounds.push(format!(
                "of {all} GILs, only the {} with the longest waits have a timeline",
                gils.len()
            ));
        }
        widen(&mut gils, room / CHARACTERS_A_ROW, collected);
        if gils.iter().any(|(_, gil)| gil.lanes.is_full) {
            self.bounds
                .push("the threads after the first 16,383 of a GIL share one lane".to_owned());
        }
        if gils.iter().any(|(_, gil)| gil.holds.lost_loose > 0) {
            self.bounds.push(
                "of the waits that ended without the GIL, those after the first 65,536 are only \
                 summed"
                    .to_owned(),
            );
        }
        gils
    }

    fn gil(
        &mut self,
        gil: &mut Gil,
        told: &Told,
        report: &Report,
        collected: &Collected,
        end: u64,
    ) -> io::Result<GilSummary> {
        let lanes = lanes(gil, told, collected);
        let rows = lanes.tid.len();
        let lanes = LanesBlock { block: self.blocks.add_json(&lanes)?.block, rows };
        let known = told.report;
        let process = &report.processes[told.process];
        Ok(GilSummary {
            process: told.process,
            gil: told.place.1,
            report: told.in_report,
            held_s: known.map_or(0.0, |it| it.held_s),
            waited_s: known.map_or(0.0, waited_s),
            contended_s: known.map_or(0.0, |it| it.contended_s),
            busy_s: process.busy_s(),
            busy_held_s: known.map_or(0.0, GilReport::busy_held_s),
            switch_interval_ms: process.switch_interval_ms,
            lanes,
            busy: busy(gil, end),
            levels: self.levels(&gil.buckets, end),
            chunks: Vec::new(),
            loose: gil.holds.pack_loose().map(|packed| self.blocks.add_table(packed)),
            look_for: LOOK_FOR_NS * gil.looks.one_in / gil.scale.unit_ns,
            samples: packed(&gil.looks.sampled).map(|packed| self.blocks.add_table(packed)),
            missing: Vec::new(),
        })
    }

    /// All levels of detail, the coarsest first.
    fn levels(&mut self, finest: &Buckets, end: u64) -> Vec<Level> {
        let mut levels = vec![(finest.width, finest.pack())];
        let mut coarser = None;
        while levels.last().is_some_and(|(width, _)| end / width > COARSEST) {
            let next = coarser.as_ref().unwrap_or(finest).coarser(4);
            levels.push((next.width, next.pack()));
            coarser = Some(next);
        }
        let levels = levels.into_iter().rev().filter(|(_, packed)| packed.rows > 0);
        let numbered = levels.map(|(width, packed)| {
            let table = self.blocks.add_table(packed);
            Level { width, table }
        });
        numbered.collect()
    }

    /// Leaves out chunks for which there is no room. Whether all have stayed.
    fn choose_chunks(
        &mut self,
        gils: &mut [(Place, Gil)],
        told: &[Told],
        report: &Report,
        collected: &Collected,
        room: usize,
    ) -> bool {
        let chunks: usize = gils.iter().map(|(_, gil)| gil.holds.chunks.len()).sum();
        let advised = self.advised.map_or(0, |advised| advised.to_string().len());
        let listed = SUMMARY + chunks * OF_CHUNK;
        let taken = self.blocks.characters() + listed + report_size(report) + advised;
        let left = room.saturating_sub(taken);
        let needed: usize = gils.iter().map(|(_, gil)| characters(gil.holds.bytes())).sum();
        let mut is_left_out = gils.iter().any(|(_, gil)| !gil.holds.left_out.is_empty());
        if needed > left {
            let worst = worst_stretches(report, collected.scale(), collected);
            let processes: HashMap<_, _> = told.iter().map(|it| (it.place, it.process)).collect();
            let is_worst = |place: Place, chunk: &super::holds::Chunk| {
                processes.get(&place).is_some_and(|&process| {
                    worst.iter().any(|it| {
                        (it.pid, it.gil) == (report.processes[process].pid, place.1)
                            && chunk.from < it.to
                            && chunk.to > it.from
                    })
                })
            };
            // In base64 three bytes are four characters.
            is_left_out |= leave_out(gils, left / 4 * 3, is_worst);
        }
        if is_left_out {
            self.bounds.push(
                "the page has no room for every hold: it keeps those of the worst periods, and \
                 sums of the others"
                    .to_owned(),
            );
        }
        !is_left_out
    }

    fn chunks(&mut self, summary: &mut GilSummary, gil: Gil, scale: Scale) {
        for chunk in gil.holds.chunks {
            summary.chunks.push(Chunk {
                from: chunk.from,
                to: chunk.to,
                waits_from: chunk.waits_from,
                holds: self.blocks.add_table(chunk.holds),
                extras: chunk.extras.map(|packed| self.blocks.add_table(packed)),
                asks: chunk.asks.map(|packed| self.blocks.add_table(packed)),
            });
        }
        for stretch in gil.holds.left_out {
            let [blame, lengths] = stretch.sums.pack(scale.unit_ns);
            summary.missing.push(Missing {
                from: stretch.from,
                to: stretch.to,
                blame: self.blocks.add_table(blame),
                lengths: self.blocks.add_table(lengths),
            });
        }
    }
}

/// Makes buckets wider where they are narrower than they need to be, and until all GILs have at
/// most so many rows.
fn widen(gils: &mut [(Place, Gil)], most: usize, collected: &Collected) {
    let end = collected.scale().at(collected.end_ns());
    for (_, gil) in gils.iter_mut() {
        // Where there are few holds to a row, they are drawn themselves.
        let enough = (gil.holds.rows / HOLDS_A_ROW).max(FEWEST_ROWS);
        while gil.buckets.rows > enough && end / gil.buckets.width > 2 * BUSY {
            gil.buckets.coarsen();
        }
    }
    let rows = |gils: &[(Place, Gil)]| gils.iter().map(|(_, gil)| gil.buckets.rows).sum::<usize>();
    while rows(gils) > most.min(LEVEL_ROWS) {
        let largest = gils.iter_mut().max_by_key(|(_, gil)| gil.buckets.rows);
        let Some((_, gil)) = largest else { return };
        let before = gil.buckets.rows;
        gil.buckets.coarsen();
        if gil.buckets.rows == before {
            return;
        }
    }
}

/// About how many characters of the report stand in the summary.
fn report_size(report: &Report) -> usize {
    let texts = |it: &crate::report::Finding| {
        it.text.len() + it.advice.as_ref().map_or(0, String::len) + 12 * it.threads.len() + 1_000
    };
    report.findings.iter().map(texts).sum::<usize>()
        + report.notes.iter().map(String::len).sum::<usize>()
        + report.processes.len() * 400
}

/// Finds a process in the report, if it is listed there.
fn process_in(report: &Report, collected: &Collected, process: ProcessId) -> Option<usize> {
    let facts = collected.processes.get(&process)?;
    let started = collected.moments(facts.started_ns);
    report.processes.iter().position(|process| {
        process.pid == facts.pid && started.contains(&process.started_s.to_bits())
    })
}

/// Finds a GIL in the report; `None` if its process is not listed there.
fn tell<'r>(place: Place, report: &'r Report, collected: &Collected) -> Option<Told<'r>> {
    let process = process_in(report, collected, place.0)?;
    let gils = &report.processes[process].gils;
    let in_report = gils.iter().position(|gil| gil.gil == place.1);
    Some(Told { place, process, in_report, report: in_report.map(|index| &gils[index]) })
}

/// What all threads waited for this GIL.
fn waited_s(gil: &GilReport) -> f64 {
    let others = gil.others.map_or(0.0, |others| others.waited_s);
    others + gil.threads.iter().map(|thread| thread.waited_s).sum::<f64>()
}

fn process<'a>(
    process: &'a ProcessReport,
    processes: &'a [ProcessReport],
    sleeps: Option<Sleeps>,
) -> Process<'a> {
    let threads =
        |gil: &GilReport| gil.threads.len() as u64 + gil.others.map_or(0, |others| others.threads);
    Process {
        pid: process.pid,
        name: match process.program(processes) {
            (argv, Some(role)) => short_name(&format!("{role} of "), argv),
            (argv, None) => short_name("", argv),
        },
        python: &process.python,
        not_recorded: process.not_recorded.as_deref(),
        free_threaded: process.free_threaded.as_ref(),
        held_s: process.gils.iter().map(|gil| gil.held_s).sum(),
        waited_s: process.gils.iter().map(waited_s).sum(),
        threads: process.gils.iter().map(threads).sum(),
        sleeps,
    }
}

/// A command line without the folders of its program and its script, behind what it is there for.
fn short_name(role: &str, argv: &[String]) -> String {
    let word = |word: &String| {
        let is_path = word.starts_with('/');
        let last = word.rsplit('/').next().filter(|last| is_path && !last.is_empty());
        last.unwrap_or(word).to_owned()
    };
    let name = role.to_owned() + &argv.iter().map(word).collect::<Vec<_>>().join(" ");
    match name.char_indices().nth(NAME) {
        None => name,
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

fn lanes(gil: &Gil, told: &Told, collected: &Collected) -> Lanes {
    let scale = gil.scale;
    let threads = told.report.map_or(&[][..], |report| &report.threads);
    let rows: HashMap<(u32, u64), usize> = threads
        .iter()
        .enumerate()
        .map(|(row, thread)| ((thread.tid, thread.started_s.to_bits()), row))
        .collect();
    let pid = collected.processes.get(&told.place.0).map(|facts| facts.pid);
    let mut lanes = Lanes::default();
    for thread in &gil.lanes.threads {
        let facts: Option<&ThreadFacts> =
            thread.as_ref().and_then(|thread| collected.threads.get(thread));
        let started = facts.map(|facts| collected.moments(facts.started_ns));
        let row = facts.zip(started).and_then(|(facts, started)| {
            started.iter().find_map(|started| rows.get(&(facts.tid, *started)))
        });
        lanes.tid.push(facts.map(|facts| facts.tid));
        lanes.name.push(facts.map_or_else(String::new, |facts| cut(&facts.name)));
        lanes.main.push(facts.is_some_and(|facts| Some(facts.tid) == pid));
        lanes.started.push(facts.map_or(0, |facts| scale.at(facts.started_ns)));
        lanes.ended.push(facts.and_then(|facts| facts.ended_ns).map(|ns| scale.at(ns)));
        lanes.row.push(row.copied());
    }
    lanes
}

/// Who held, and how much was waited, over the whole time.
fn busy(gil: &Gil, end: u64) -> Busy {
    let (contended_width, contended) = &gil.contended;
    let mut width = gil.buckets.width.max(*contended_width);
    while end / width >= BUSY {
        width *= 2;
    }
    let count = usize::try_from(end / width + 1).expect("there are at most a few hundred");
    let mut busy = Busy {
        width,
        held: vec![0; count],
        waited: vec![0; count],
        contended: vec![0; count],
        holder: vec![-1; count],
    };
    let mut most = vec![0; count];
    for (lane, row) in gil.buckets.coarser(width / gil.buckets.width).iter() {
        for bucket in row.bucket..=row.bucket + row.run {
            let Some(bucket) = usize::try_from(bucket).ok().filter(|it| *it < count) else { break };
            busy.held[bucket] += row.held;
            busy.waited[bucket] += row.waited;
            if row.held > most[bucket] {
                most[bucket] = row.held;
                busy.holder[bucket] = i64::try_from(lane).expect("there are a few thousand lanes");
            }
        }
    }
    for (index, units) in contended.iter().enumerate() {
        let at = index as u64 * contended_width / width;
        if let Some(sum) = usize::try_from(at).ok().and_then(|at| busy.contended.get_mut(at)) {
            *sum += units;
        }
    }
    busy
}

/// Part of the time of one GIL, in units.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Stretch {
    pid: u32,
    gil: u8,
    from: u64,
    to: u64,
}

/// When things were at their worst, by the findings.
fn worst_stretches(report: &Report, scale: Scale, collected: &Collected) -> HashSet<Stretch> {
    let started_ns = collected.span.started_ns();
    let findings = report.findings.iter();
    let findings = findings.filter(|it| !matches!(it.evidence, Evidence::NotRecorded {}));
    let stretch = |finding: &crate::report::Finding| {
        let worst = finding.worst.as_ref().map(|worst| &worst.window);
        let window = worst.or(finding.window.as_ref())?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds since the start are not negative, and a cast saturates"
        )]
        let at = |seconds: f64| scale.at(started_ns.saturating_add((seconds * 1e9) as u64));
        let (from, to) = (at(window.start_s), at(window.end_s));
        Some(Stretch { pid: finding.pid?, gil: finding.gil?, from, to })
    };
    findings.filter_map(stretch).collect()
}
