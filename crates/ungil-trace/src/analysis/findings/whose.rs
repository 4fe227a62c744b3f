//! Which process and which GIL a finding is about, where there are several.

use crate::report::{Finding, GilReport, ProcessReport};

/// Characters of a command's name that are shown at most.
const LONGEST: usize = 40;

/// Lets the text of each finding begin with where it was found, if that is not the only place.
pub(in crate::analysis) fn say(processes: &[ProcessReport], findings: &mut [Finding]) {
    for finding in findings {
        let process = processes.iter().find(|process| Some(process.pid) == finding.pid);
        let place = process.and_then(|process| {
            let gil = finding.gil.and_then(|gil| gil_of(process, gil));
            let place = [command_of(processes, process), gil];
            let place: Vec<_> = place.into_iter().flatten().collect();
            (!place.is_empty()).then(|| place.join(", "))
        });
        if let Some(place) = place {
            finding.text.insert_str(0, &format!("{place}: "));
        }
    }
}

/// `the GIL`, `GIL 2 of app.py (pid 17)`: as the subject of a sentence.
pub(super) fn the_gil(
    processes: &[ProcessReport],
    process: &ProcessReport,
    gil: &GilReport,
) -> String {
    let name = gil_of(process, gil.gil).unwrap_or_else(|| "the GIL".to_owned());
    match command_of(processes, process) {
        Some(command) => format!("{name} of {command}"),
        None => name,
    }
}

/// The command and the process id, if other processes are listed too.
fn command_of(processes: &[ProcessReport], process: &ProcessReport) -> Option<String> {
    let name = || {
        let (argv, role) = process.program(processes);
        let role = role.map_or_else(String::new, |role| format!(" {role}"));
        format!("{}{role} (pid {})", command_name(argv), process.pid)
    };
    (processes.len() > 1).then(name)
}

/// The GIL by its number, if the process has several.
fn gil_of(process: &ProcessReport, gil: u8) -> Option<String> {
    (process.gils.len() > 1).then(|| format!("GIL {gil}"))
}

/// What people call a command: the script or module that an interpreter runs, else the program;
/// what a process calls itself (setproctitle) is kept.
fn command_name(argv: &[String]) -> String {
    let Some(program) = argv.first() else { return "?".to_owned() };
    let name = if program.contains(' ') { program } else { file_name(program) };
    let name = match script_of(name, argv) {
        Some(script) => script,
        None => name.to_owned(),
    };
    match name.char_indices().nth(LONGEST) {
        Some(_) => name.chars().take(LONGEST - 1).chain(['…']).collect(),
        None => name,
    }
}

/// What an interpreter of that name runs, if it is one and that is told.
fn script_of(interpreter: &str, argv: &[String]) -> Option<String> {
    if !interpreter.starts_with("python") && !interpreter.starts_with("pypy") {
        return None;
    }
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-m" => return words.next().cloned(),
            "-c" => return Some(format!("{interpreter} -c")),
            "-W" | "-X" | "--check-hash-based-pycs" => {
                words.next();
            }
            option if option.starts_with('-') && option.len() > 1 => {}
            script => return Some(file_name(script).to_owned()),
        }
    }
    None
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_called_by_what_it_runs() {
        for (command, name) in [
            ("/usr/bin/python3.11 app.py --port 80", "app.py"),
            ("python -X dev -W error -u /srv/app/app.py", "app.py"),
            ("python3 -m http.server 80", "http.server"),
            ("python3 -c import\u{a0}this", "python3 -c"),
            ("/usr/bin/python3 /srv/venv/bin/gunicorn app:app", "gunicorn"),
            ("/srv/venv/bin/celery worker", "celery"),
            ("python3", "python3"),
            ("python3 -", "-"),
            ("python3 /srv/app/", "app"),
            ("pypy3 app.py", "app.py"),
        ] {
            let argv: Vec<_> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(command_name(&argv), name);
        }
        assert_eq!(command_name(&[]), "?");
        assert_eq!(command_name(&["gunicorn: worker [a/b]".to_owned()]), "gunicorn: worker [a/b]");
        let long = command_name(&["x".repeat(50)]);
        assert_eq!((long.chars().count(), long.chars().last()), (LONGEST, Some('…')));
    }
}
