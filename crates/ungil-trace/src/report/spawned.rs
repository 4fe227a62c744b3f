//! Processes that multiprocessing started. Their own command line tells nothing of their program.

use super::ProcessReport;

/// How the code begins that they are given to run, and what they are there for.
const ROLES: [(&str, &str); 3] = [
    ("from multiprocessing.spawn ", WORKER),
    ("from multiprocessing.forkserver ", "fork server"),
    ("from multiprocessing.resource_tracker ", "resource tracker"),
];
const WORKER: &str = "worker";

impl ProcessReport {
    /// The command line of the program that it belongs to, and what it is there for if
    /// multiprocessing started it.
    pub fn program<'a>(&'a self, processes: &'a [Self]) -> (&'a [String], Option<&'static str>) {
        let Some(mut own) = role(self) else { return (&self.argv, None) };
        let mut program = self;
        for _ in 0..processes.len() {
            let is_parent =
                |it: &&Self| it.pid == program.parent_pid && it.started_s <= program.started_s;
            let Some(parent) = processes.iter().find(is_parent) else { break };
            match role(parent) {
                None => return (&parent.argv, Some(own)),
                // It was forked, and has the command line of that server.
                Some(role) if role == own => own = WORKER,
                Some(_) => {}
            }
            program = parent;
        }
        (&self.argv, None)
    }
}

fn role(process: &ProcessReport) -> Option<&'static str> {
    let code = process.argv.iter().skip_while(|word| *word != "-c").nth(1)?;
    ROLES.iter().find(|(begin, _)| code.starts_with(begin)).map(|(_, role)| *role)
}
