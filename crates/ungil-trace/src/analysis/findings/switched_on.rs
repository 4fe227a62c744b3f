//! A free-threaded interpreter whose GIL was switched on, by the import of an extension module that
//! does not say that it needs none.

use super::words;
use crate::report::{Evidence, Finding, FreeThreaded, ProcessReport};

/// The findings of all processes.
pub(in crate::analysis) fn find(processes: &[ProcessReport]) -> Vec<Finding> {
    processes.iter().filter_map(in_process).collect()
}

fn in_process(process: &ProcessReport) -> Option<Finding> {
    let known = process.free_threaded.as_ref().filter(|it| it.gil == Some("switched on"))?;
    let FreeThreaded { gil_on_s, module, library, frame, .. } = known;
    let import = match module {
        Some(module) => format!("the import of {module}"),
        None => "an import".to_owned(),
    };
    let at =
        frame.as_deref().map_or_else(String::new, |frame| format!(" ({})", words::place(frame)));
    let after = gil_on_s.map(|on_s| words::length((on_s - process.started_s).max(0.0)));
    let after = after.map_or_else(String::new, |after| format!(" {after} after its start"));
    let who = if module.is_some() { "this module does" } else { "an extension module did" };
    let text = format!(
        "{import}{at} switched the GIL of this process on{after}: {who} not declare that it works \
         without a GIL"
    );
    let (module, library, frame) = (module.clone(), library.clone(), frame.clone());
    let advice = "look for a version of the module that supports free-threaded Python; \
                  PYTHON_GIL=0 keeps the GIL off anyway, which is safe only if the module is \
                  thread-safe";
    Some(Finding {
        advice: Some(advice.to_owned()),
        pid: Some(process.pid),
        ..Finding::of_run(Evidence::GilSwitchedOn { module, library, frame }, text)
    })
}
