//! Who asks for the jobs of a pool.
//!
//! No event says so. But a client has one job done at a time, and asks for the next one once it has
//! its answer. So there are as many clients as jobs that computed at the same time. A job counts as
//! that of the client whose last one of its kind was done last. Clients that ask for one kind only
//! keep their pace if those that ask for another one wait longer.
//!
//! A client thinks for as long as in the quickest cases: in others its request waited for the feeder.

use super::jobs::Job;
use crate::demand::successors::quickest;
use std::ops::Range;

/// Jobs whose longest uses of the GIL differ by less than this factor are of one kind.
const ALIKE: u64 = 4;
/// Shorter ones all are.
const SHORT_NS: u64 = 5_000;

/// Who asks for one job after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// When its first job arrives.
    pub(crate) begins_ns: u64,
    pub(crate) asks: Vec<Ask>,
    /// Which of them it would ask again and again if the run went on.
    pub(crate) again: Range<usize>,
    /// How long it takes from the answer to the last one of these to the first one.
    pub(crate) pause_ns: u64,
}

/// A job that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) job: usize,
    /// How long after the answer to the one before it arrives.
    pub(crate) after_ns: u64,
}

/// Finds out who asked for these jobs, and puts those in the order in which they computed.
pub(super) fn of(jobs: &mut [Job], middle: &Range<u64>) -> Vec<Client> {
    jobs.sort_by_key(|it| (it.computes_ns.start, it.worker));
    let mut ends: Vec<_> = jobs.iter().map(|it| it.computes_ns.end).zip(0..).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut clients: Vec<Client> = Vec::new();
    // Those that have their answers.
    let mut answered: Vec<usize> = Vec::new();
    let mut client_of = vec![0; jobs.len()];
    for (number, job) in jobs.iter().enumerate() {
        let has_ended =
            |&(at_ns, ended): &(u64, usize)| at_ns <= job.computes_ns.start && ended < number;
        while let Some((_, ended)) = ends.next_if(has_ended) {
            answered.push(client_of[ended]);
        }
        let is_alike = |client: &usize| {
            let [one_ns, other_ns] =
                [job, &jobs[clients[*client].asks[0].job]].map(|it| it.longest_ns.max(SHORT_NS));
            one_ns.max(other_ns) / one_ns.min(other_ns) < ALIKE
        };
        if let Some(found) = answered.iter().rposition(is_alike) {
            let client = answered.remove(found);
            let asks = &mut clients[client].asks;
            let answer_ns = asks.last().map_or(0, |last| jobs[last.job].computes_ns.end);
            let after_ns = job.arrives_ns.saturating_sub(answer_ns);
            asks.push(Ask { job: number, after_ns });
            client_of[number] = client;
        } else {
            client_of[number] = clients.len();
            let asks = vec![Ask { job: number, after_ns: 0 }];
            clients.push(Client { begins_ns: job.arrives_ns, asks, again: 0..0, pause_ns: 0 });
        }
    }
    for client in &mut clients {
        client.thinks(jobs);
        client.repeats(jobs, middle);
    }
    clients
}

impl Client {
    /// Finds out how long it thinks.
    fn thinks(&mut self, jobs: &[Job]) {
        let is_let_in = |ask: &Ask| jobs[ask.job].is_let_in;
        let after = self.asks[1..].iter().filter(|ask| is_let_in(ask));
        let thinks_ns = quickest(after.map(|ask| ask.after_ns).collect());
        for ask in self.asks[1..].iter_mut().filter(|ask| is_let_in(ask)) {
            ask.after_ns = thinks_ns;
        }
    }

    /// Finds out what of it would come again.
    fn repeats(&mut self, jobs: &[Job], middle: &Range<u64>) {
        let until =
            |at_ns| self.asks.partition_point(|ask| jobs[ask.job].computes_ns.start < at_ns);
        self.again = until(middle.start)..until(middle.end);
        let (Some(first), Some(last)) =
            (self.asks.get(self.again.start), self.asks[self.again.clone()].last())
        else {
            return;
        };
        let before_ns = jobs[first.job].arrives_ns.saturating_sub(middle.start);
        let behind_ns = middle.end.saturating_sub(jobs[last.job].computes_ns.end);
        self.pause_ns = before_ns.saturating_add(behind_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that computes from when to when, and arrives so long before.
    fn job((from, to): (u64, u64), before: u64, is_let_in: bool) -> Job {
        Job {
            worker: 0,
            bursts: 0..1,
            longest: 0,
            longest_ns: (to - from) * 1_000_000,
            computes_ns: from..to,
            begins_ns: from - before,
            arrives_ns: from - before,
            is_let_in,
        }
    }

    /// Who asks for jobs that compute from when to when, and arrive 2 before.
    fn clients(computed: &[(u64, u64)]) -> Vec<Vec<(usize, u64)>> {
        let mut jobs: Vec<_> = computed.iter().map(|times| job(*times, 2, false)).collect();
        let clients = of(&mut jobs, &(100..950));
        let asks = |it: &Client| it.asks.iter().map(|ask| (ask.job, ask.after_ns)).collect();
        clients.iter().map(asks).collect()
    }

    #[test]
    fn there_are_as_many_clients_as_jobs_that_compute_at_a_time() {
        let computed = [(10, 20), (15, 25), (30, 40), (35, 45), (50, 60)];
        assert_eq!(clients(&computed), [vec![(0, 0), (3, 13), (4, 3)], vec![(1, 0), (2, 3)]]);
    }

    #[test]
    fn a_client_thinks_for_as_long_as_in_the_quickest_case() {
        let at = |from| job((from, from + 10), 0, true);
        let mut jobs = [at(20), at(40), at(90)];
        let [client] = &of(&mut jobs, &(100..950))[..] else { panic!("one client") };
        assert_eq!(client.asks[1..].iter().map(|it| it.after_ns).collect::<Vec<_>>(), [10, 10]);
    }

    #[test]
    fn jobs_of_another_length_are_those_of_another_client() {
        let computed = [(10, 20), (30, 31), (40, 50), (60, 61)];
        assert_eq!(clients(&computed), [vec![(0, 0), (2, 18)], vec![(1, 0), (3, 27)]]);
    }

    #[test]
    fn a_client_goes_on_with_what_it_asked_for_in_the_middle_at_the_same_pace() {
        let at = |from| job((from, from + 10), 0, false);
        let mut jobs = [at(20), at(150), at(600), at(980)];
        let [client] = &of(&mut jobs, &(100..950))[..] else { panic!("one client") };
        assert_eq!((client.again.clone(), client.pause_ns), (1..3, 50 + 340));
    }
}
