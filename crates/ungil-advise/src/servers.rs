//! Programs that run other people's code in threads, and in more processes if they are told to.

/// Their commands, and the options that make more processes of them, each with a GIL of its own.
/// From the documentation of each; of a command that is run as a module, the module's name counts.
const SERVERS: [(&str, &str); 10] = [
    ("celery", "--pool prefork --concurrency N"),
    ("dask", "--nworkers N --nthreads 1"),
    ("dramatiq", "--processes N --threads 1"),
    ("granian", "--workers N"),
    ("gunicorn", "--workers N"),
    ("huey_consumer", "--worker-type process --workers N"),
    ("hypercorn", "--workers N"),
    ("locust", "--processes N"),
    ("uvicorn", "--workers N"),
    ("uwsgi", "--processes N"),
];

/// The server that a command starts, and its options for more processes.
pub fn more_processes(command: &[String]) -> Option<(&'static str, &'static str)> {
    let name = |word: &str| -> Option<(&str, &str)> {
        let name = word.rsplit('/').next()?.trim_end_matches(".py");
        SERVERS.into_iter().find(|server| server.0 == name)
    };
    let (first, others) = command.split_first()?;
    if !first.rsplit('/').next()?.starts_with("python") {
        return name(first);
    }
    // The first word that is no option is the program, except behind -m, -W and -X.
    let mut words = others.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-m" => return name(words.next()?.split('.').next()?),
            "-W" | "-X" => drop(words.next()),
            "-c" => return None,
            option if option.starts_with('-') => (),
            program => return name(program),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_command() {
        let options = |command: &str| {
            let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
            more_processes(&words).map(|(name, _)| name)
        };
        for (command, name) in [
            ("/srv/venv/bin/python3 /srv/venv/bin/celery -A app worker -P threads", "celery"),
            ("python -X dev -u -m gunicorn --threads 8 app:app", "gunicorn"),
            ("/usr/bin/python3.11 -Wignore -m uvicorn app:app", "uvicorn"),
            ("python huey_consumer.py app.huey -w 4", "huey_consumer"),
            ("python -m celery.bin.celery worker", "celery"),
            ("/opt/bin/uwsgi --http :80", "uwsgi"),
        ] {
            assert_eq!(options(command), Some(name), "{command}");
        }
        for command in ["python app.py gunicorn", "python -c gunicorn", "python", "", "python -m"] {
            assert_eq!(options(command), None, "{command}");
        }
    }
}
