//! What a page leaves out so that it stays one that people pass around, and the sentences that say
//! so.

use super::gil::Gil;
use super::holds::Chunk;
use crate::analysis::Place;
use crate::report::{BlameReport, GilReport, OtherThreads, Report, ThreadReport, Who};

/// GILs with more than a row in the report.
pub(super) const GILS: usize = 64;
/// Rows of the report, over all processes.
const THREADS: usize = 12_000;
const BLAMES: usize = 20_000;
const LONG_HOLDS: usize = 2_000;
/// Looks at holders, over all GILs.
const LOOKS: usize = 150_000;
/// Findings, strongest first.
const FINDINGS: usize = 200;
/// Characters of a command line.
const ARGUMENTS: usize = 4_000;

/// Leaves out holds of these GILs until the rest takes at most `most_bytes`: chunks that are not
/// the worst, those with the least wait time for each byte first. Whether any was left out.
pub(super) fn leave_out(
    gils: &mut [(Place, Gil)],
    most_bytes: usize,
    is_worst: impl Fn(Place, &Chunk) -> bool,
) -> bool {
    let mut chunks = Vec::new();
    for (index, (place, gil)) in gils.iter().enumerate() {
        for (number, chunk) in gil.holds.chunks.iter().enumerate() {
            let worth = chunk.waited as f64 / chunk.bytes().max(1) as f64;
            chunks.push((is_worst(*place, chunk), worth, chunk.bytes(), index, number));
        }
    }
    chunks.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let (mut sum, mut gone) = (0, vec![Vec::new(); gils.len()]);
    for (_, _, bytes, index, number) in chunks {
        sum += bytes;
        if sum > most_bytes {
            gone[index].push(number);
        }
    }
    for ((_, gil), mut places) in gils.iter_mut().zip(gone) {
        if !places.is_empty() {
            places.sort_unstable();
            gil.holds.leave_out(&places);
        }
    }
    gils.iter().any(|(_, gil)| !gil.holds.left_out.is_empty())
}

/// Keeps as many looks as there is room for: those at long holds that others waited for most, and a
/// fair part of the others. Whether any of the former is gone.
pub(super) fn fewer_looks(gils: &mut [(Place, Gil)]) -> bool {
    let fair = |gils: &[(Place, Gil)]| -> usize {
        let sampled = gils.iter().flat_map(|(_, gil)| &gil.looks.sampled);
        sampled.filter(|hold| hold.is_fair()).count()
    };
    while fair(gils) > LOOKS / 2 {
        for (_, gil) in gils.iter_mut() {
            gil.looks.thin();
        }
    }
    let most = LOOKS - fair(gils);
    let all = gils.iter().flat_map(|(_, gil)| &gil.looks.sampled).filter(|it| !it.is_fair());
    let mut weights: Vec<_> = all.map(|hold| (hold.waited, hold.looks.len())).collect();
    weights.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    let least = weights.iter().find(|(_, looks)| {
        sum += looks;
        sum > most
    });
    let Some(&(least, _)) = least else {
        return gils.iter().any(|(_, gil)| gil.looks.lost > 0);
    };
    for (_, gil) in gils.iter_mut() {
        gil.looks.sampled.retain(|hold| hold.is_fair() || hold.waited > least);
    }
    true
}

/// Shortens the report to what a page has room for, and says what is missing.
pub(super) fn shorten(report: &mut Report) -> Vec<String> {
    let mut said = Vec::new();
    for process in &mut report.processes {
        shorten_arguments(&mut process.argv);
    }
    if report.findings.len() > FINDINGS {
        let all = report.findings.len();
        report.findings.truncate(FINDINGS);
        said.push(format!("the {FINDINGS} costliest of {all} findings are listed"));
    }
    let gils = || report.processes.iter().flat_map(|process| &process.gils);
    let weights = gils().flat_map(|gil| gil.threads.iter().map(weight)).collect();
    let (least_thread, threads) = least_of(weights, THREADS);
    let weights = gils().flat_map(|gil| gil.blame.iter().map(|row| row.waited_s)).collect();
    let (least_blame, blames) = least_of(weights, BLAMES);
    let count = gils().count().max(1);
    let mut long_holds = 0;
    for gil in report.processes.iter_mut().flat_map(|process| &mut process.gils) {
        if threads > THREADS {
            fold_threads(gil, least_thread);
        }
        if blames > BLAMES {
            fold_blame(gil, least_blame);
        }
        long_holds += gil.long_holds.len();
    }
    if threads > THREADS {
        said.push(format!(
            "of {threads} threads, those that held and waited most are listed one by one; the \
             others are summed"
        ));
    }
    if blames > BLAMES {
        said.push("pairs of threads that waited for each other least are summed".to_owned());
    }
    if long_holds > LONG_HOLDS {
        let each = (LONG_HOLDS / count).max(4);
        for gil in report.processes.iter_mut().flat_map(|process| &mut process.gils) {
            gil.long_holds.truncate(each);
        }
        said.push(format!("the page lists at most {each} long holds of a GIL"));
    }
    said
}

fn shorten_arguments(argv: &mut Vec<String>) {
    let mut left = ARGUMENTS;
    for argument in argv.iter_mut() {
        if let Some((end, _)) = argument.char_indices().nth(left) {
            argument.truncate(end);
            argument.push('…');
        }
        left = left.saturating_sub(argument.chars().count());
    }
    let empty = argv.iter().rev().take_while(|argument| *argument == "…").count();
    argv.truncate((argv.len() - empty + 1).min(argv.len()));
}

fn weight(thread: &ThreadReport) -> f64 {
    thread.held_s + thread.waited_s
}

/// The weight below which all but `most` of these lie, and how many there are.
fn least_of(mut weights: Vec<f64>, most: usize) -> (f64, usize) {
    weights.sort_by(|a, b| b.total_cmp(a));
    (weights.get(most).copied().unwrap_or(0.0), weights.len())
}

fn fold_threads(gil: &mut GilReport, least: f64) {
    let (kept, folded): (Vec<_>, Vec<_>) =
        std::mem::take(&mut gil.threads).into_iter().partition(|thread| weight(thread) > least);
    gil.threads = kept;
    if folded.is_empty() {
        return;
    }
    let others = gil.others.get_or_insert_with(OtherThreads::default);
    for thread in folded {
        others.threads += 1;
        others.cpu_s += thread.cpu_s.unwrap_or(0.0);
        others.held_s += thread.held_s;
        others.waited_s += thread.waited_s;
        others.holds += thread.holds.count;
        others.waits += thread.waits.count;
        others.voluntary += thread.voluntary;
        others.forced += thread.forced;
        others.drop_requests += thread.drop_requests;
        others.lost_events += thread.lost_events;
    }
}

fn fold_blame(gil: &mut GilReport, least: f64) {
    let (kept, folded): (Vec<_>, Vec<_>) =
        std::mem::take(&mut gil.blame).into_iter().partition(|row| row.waited_s > least);
    gil.blame = kept;
    let waited_s = folded.iter().map(|row| row.waited_s).sum();
    if !folded.is_empty() {
        gil.blame.push(BlameReport {
            victim: Who::Others,
            victim_name: None,
            culprit: Who::Others,
            culprit_name: None,
            waited_s,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_line_keeps_its_beginning() {
        let mut argv =
            vec!["python".to_owned(), "x".repeat(2 * ARGUMENTS), "y".repeat(9), "z".to_owned()];
        shorten_arguments(&mut argv);
        assert_eq!(argv.len(), 3);
        assert!(argv[1].ends_with("x…") && argv[1].chars().count() <= ARGUMENTS);
        assert_eq!(argv[2], "…");
        let mut short = vec!["python".to_owned(), "é".repeat(9)];
        shorten_arguments(&mut short);
        assert_eq!(short, ["python".to_owned(), "é".repeat(9)]);
    }
}
