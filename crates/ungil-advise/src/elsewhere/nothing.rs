//! That it is not the GIL, where the trace does not show what it is, if anything.

use super::sight::Sight;
use crate::advice::{Action, Advice, Cause, Confidence, Kind, Subject, Sure};
use crate::advice::{Evidence, Unit};
use crate::place::finding_key;
use ungil_trace::report::{Evidence as Found, Report};

/// What the finding says, and that nothing else was seen.
pub fn say(report: &Report) -> Advice {
    let finding = report.findings.first();
    let text = finding.map_or("", |finding| finding.text.as_str());
    let recorded = !finding.is_none_or(|it| matches!(it.evidence, Found::NotRecorded {}));
    let looked = Sight::all(report).any(|sight| sight.seen().next().is_some());
    let mut evidence = Vec::new();
    if let Some(Found::None { contended_share, waited_max_s, .. }) = finding.map(|it| &it.evidence)
    {
        let contended = finding_key(0, "contended_share");
        let waited = finding_key(0, "waited_max_s");
        evidence.push(Evidence::at("contended", *contended_share, Unit::Share, contended));
        evidence.push(Evidence::at(
            "the most that a thread waited",
            *waited_max_s,
            Unit::Seconds,
            waited,
        ));
    }
    let (sure, because) = match (recorded, looked) {
        (false, _) => (Sure::Low, "no GIL was recorded, so nothing is known of it"),
        (true, true) => (
            Sure::High,
            "every wait was recorded, and threads that were off the GIL \
                                      for long were looked at: none was in a line that took long",
        ),
        (true, false) => (
            Sure::Medium,
            "every wait was recorded; what threads did off the GIL was \
                                         not seen",
        ),
    };
    let what = if recorded { "nothing to gain here" } else { "no advice" };
    Advice {
        kind: Kind::NotTheGil,
        cause: Some(Cause::Unknown),
        text: format!("{what}: {text}"),
        subject: Subject {
            pid: finding.and_then(|it| it.pid),
            gil: finding.and_then(|it| it.gil),
            ..Subject::default()
        },
        action: Action::default(),
        gain: None,
        confidence: Confidence { level: sure, because: because.to_owned() },
        evidence,
    }
}
