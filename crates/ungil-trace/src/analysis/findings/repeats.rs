//! Findings that are the same for many processes: a server has workers that are all alike.

use crate::analysis::groups::{command_pattern, pattern_of};
use crate::report::{Evidence, Finding, ProcessReport};
use std::collections::HashMap;
use std::mem::discriminant;

/// Has each finding say which one before it tells the same of another process.
pub(in crate::analysis) fn mark(processes: &[ProcessReport], findings: &mut [Finding]) {
    let mut firsts = HashMap::new();
    for (place, finding) in findings.iter_mut().enumerate() {
        let mut images = processes.iter().filter(|process| Some(process.pid) == finding.pid);
        let Some(process) = images.next() else { continue };
        let subject = (
            command_pattern(&process.argv),
            finding.gil,
            worst_thread(process, finding).map(pattern_of),
            function(&finding.evidence).map(str::to_owned),
        );
        let kind = (discriminant(&finding.evidence), finding.scope);
        let &mut (first, first_pid) = firsts.entry((kind, subject)).or_insert((place, process.pid));
        finding.same_as = (first_pid != process.pid).then_some(first);
    }
}

/// The name of the thread that a finding is about first.
fn worst_thread<'a>(process: &'a ProcessReport, finding: &Finding) -> Option<&'a str> {
    let gil = process.gils.iter().find(|gil| Some(gil.gil) == finding.gil)?;
    let thread = gil.threads.iter().find(|thread| finding.threads.first() == Some(&thread.tid))?;
    Some(&thread.name)
}

/// The code that a finding is about.
fn function(evidence: &Evidence) -> Option<&str> {
    match evidence {
        Evidence::NativeHold { user_frame, frame, .. } => {
            user_frame.as_deref().or(frame.as_deref())
        }
        _ => None,
    }
}
