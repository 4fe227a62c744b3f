//! Programs that run other people's code in threads, and in more processes or in another number of
//! threads if they are told to.

/// Such a program.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Its command; of one that is run as a module, the module's name.
    pub command: &'static str,
    /// The options that make more processes of it, each with a GIL of its own.
    processes: Option<&'static str>,
    /// Those that give each of its processes so many threads, of a pool that is in Python and known.
    threads: Option<&'static str>,
}

/// From the documentation of each.
const SERVERS: [Server; 13] = [
    of(
        "celery",
        Some("--pool prefork --concurrency N"),
        Some("worker --pool threads --concurrency N"),
    ),
    of("cheroot", None, Some("--threads N")),
    of("dask", Some("--nworkers N --nthreads 1"), None),
    of("dramatiq", Some("--processes N --threads 1"), Some("--threads N")),
    of("granian", Some("--workers N"), None),
    of("gunicorn", Some("--workers N"), Some("--threads N")),
    of("huey_consumer", Some("--worker-type process --workers N"), Some("--workers N")),
    of("hypercorn", Some("--workers N"), None),
    of("locust", Some("--processes N"), None),
    of("uvicorn", Some("--workers N"), None),
    of("uwsgi", Some("--processes N"), None),
    of("waitress", None, Some("--threads=N")),
    of("waitress-serve", None, Some("--threads=N")),
];

const fn of(
    command: &'static str,
    processes: Option<&'static str>,
    threads: Option<&'static str>,
) -> Server {
    Server { command, processes, threads }
}

impl Server {
    /// The one that a command starts.
    pub fn of(command: &[String]) -> Option<Self> {
        let name = |word: &str| -> Option<Self> {
            let name = word.rsplit('/').next()?.trim_end_matches(".py");
            SERVERS.into_iter().find(|server| server.command == name)
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

    /// The folder of its package.
    pub fn package(self) -> &'static str {
        self.command.split(['-', '_']).next().unwrap_or(self.command)
    }

    /// The command with its option for so many threads in a process: `gunicorn --threads 4`.
    pub fn with_threads(self, count: &str) -> Option<String> {
        let options = self.threads?.replace('N', count);
        Some(match self.command {
            // As a module it has no command of that name.
            "waitress" => format!("waitress-serve {options}"),
            command => format!("{command} {options}"),
        })
    }
}

/// The server that a command starts, and its options for more processes.
pub fn more_processes(command: &[String]) -> Option<(&'static str, &'static str)> {
    let server = Server::of(command)?;
    Some((server.command, server.processes?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_server_is_known_by_its_command() {
        let options = |command: &str| more_processes(&words(command)).map(|(name, _)| name);
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

    #[test]
    fn a_server_can_be_given_another_number_of_threads_if_it_has_an_option_for_it() {
        let line = |command: &str| Server::of(&words(command)).unwrap().with_threads("4");
        for (command, says) in [
            ("python -m gunicorn app:app", Some("gunicorn --threads 4")),
            ("waitress-serve app:app", Some("waitress-serve --threads=4")),
            ("python -m waitress app:app", Some("waitress-serve --threads=4")),
            ("celery -A app worker", Some("celery worker --pool threads --concurrency 4")),
            ("uvicorn app:app", None),
        ] {
            assert_eq!(line(command).as_deref(), says, "{command}");
        }
        assert!(more_processes(&words("waitress-serve app:app")).is_none());
    }
}
