//! Pools of threads, the clients that ask them for jobs, and what waits for a thread.

use super::arrivals::Arrivals;
use super::events::Events;
use crate::plan::{Planned, Work};
use std::collections::VecDeque;
use std::sync::Arc;

/// All pools of a simulation. Their clients are no threads, but have numbers behind those.
#[derive(Debug)]
pub(super) struct Pools {
    pools: Vec<Open>,
    clients: Vec<Asking>,
    /// The number of the first client.
    first_client: usize,
    /// Of each thread, for which pool it works, and for which client it does now.
    works_in: Vec<Option<usize>>,
    works_for: Vec<usize>,
}

/// A pool, and what has become of it.
#[derive(Debug)]
struct Open {
    work: Arc<Work>,
    /// The clients whose jobs wait for a thread, and the threads that wait for a job.
    waiting: VecDeque<usize>,
    idle: VecDeque<usize>,
    /// How many clients will ask for more.
    asking: usize,
}

/// A client, and what it has come to.
#[derive(Debug)]
struct Asking {
    pool: usize,
    /// Which client of the pool it is, and for which of its jobs it asks.
    client: usize,
    ask: usize,
    /// Whether the one that hands jobs on has seen to it.
    is_let_in: bool,
}

/// What there is for a thread of a pool.
#[derive(Debug)]
pub(super) enum Next {
    /// A job of this work.
    Job(Arc<Work>, usize),
    /// Nothing yet. It is told when there may be.
    Nothing,
    /// Nothing, ever.
    Over,
}

impl Pools {
    pub(super) fn new(threads: &[Planned]) -> Self {
        let (mut pools, mut clients) = (Vec::<Open>::new(), Vec::new());
        let mut works_in = vec![None; threads.len()];
        for (work, _) in threads.iter().filter_map(|thread| thread.works_in.as_ref()) {
            if pools.iter().any(|it| Arc::ptr_eq(&it.work, work)) {
                continue;
            }
            let (pool, asking) = (pools.len(), work.pool.clients.len());
            work.workers.iter().for_each(|it| works_in[*it] = Some(pool));
            let asks = |client| Asking { pool, client, ask: 0, is_let_in: false };
            clients.extend((0..asking).map(asks));
            let (waiting, idle) = (VecDeque::new(), VecDeque::new());
            pools.push(Open { work: work.clone(), waiting, idle, asking });
        }
        let works_for = vec![0; threads.len()];
        Self { pools, clients, first_client: threads.len(), works_in, works_for }
    }

    /// How many clients there are.
    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Says when the first job of each client arrives.
    pub(super) fn begin(&self, events: &mut Events) {
        for (number, it) in self.clients.iter().enumerate() {
            let client = &self.pools[it.pool].work.pool.clients[it.client];
            events.plan(self.first_client + number, client.begins_ns);
        }
    }

    /// Whether that is the number of a client.
    pub(super) fn is_client(&self, number: usize) -> bool {
        number >= self.first_client
    }

    /// The job of client `number` arrives: where it is handed on, or, if it was, at the pool.
    pub(super) fn arrives(
        &mut self,
        number: usize,
        now_ns: u64,
        arrivals: &mut Arrivals,
        events: &mut Events,
    ) {
        events.cancel(number);
        let client = number - self.first_client;
        let it = &mut self.clients[client];
        let open = &mut self.pools[it.pool];
        let pool = &open.work.pool;
        let is_let_in = pool.jobs[pool.clients[it.client].asks[it.ask].job].is_let_in;
        let feeder = open.work.feeder.filter(|_| is_let_in && !it.is_let_in);
        if let Some(feeder) = feeder
            && arrivals.arrives(number, feeder, now_ns, events)
        {
            it.is_let_in = true;
            return;
        }
        it.is_let_in = false;
        open.waiting.push_back(client);
        if let Some(worker) = open.idle.pop_front() {
            events.plan(worker, now_ns);
        }
    }

    /// What thread `number` does next.
    pub(super) fn next(&mut self, number: usize) -> Next {
        let Some(pool) = self.works_in[number] else { return Next::Over };
        let open = &mut self.pools[pool];
        let Some(client) = open.waiting.pop_front() else {
            if open.asking == 0 {
                return Next::Over;
            }
            open.idle.push_back(number);
            return Next::Nothing;
        };
        self.works_for[number] = client;
        let it = &self.clients[client];
        Next::Job(open.work.clone(), open.work.pool.clients[it.client].asks[it.ask].job)
    }

    /// The client of thread `number` has its answer, and asks again.
    pub(super) fn answered(&mut self, number: usize, now_ns: u64, events: &mut Events) {
        let client = self.works_for[number];
        let it = &mut self.clients[client];
        let open = &mut self.pools[it.pool];
        let asks = &open.work.pool.clients[it.client];
        it.ask += 1;
        let mut after_ns = asks.asks.get(it.ask).map(|ask| ask.after_ns);
        let is_again = it.ask == asks.again.end && !asks.again.is_empty();
        if is_again && !open.work.once {
            (it.ask, after_ns) = (asks.again.start, Some(asks.pause_ns));
        }
        if let Some(after_ns) = after_ns {
            events.plan(self.first_client + client, now_ns.saturating_add(after_ns));
            return;
        }
        open.asking -= 1;
        if open.asking == 0 {
            for worker in open.idle.drain(..) {
                events.plan(worker, now_ns);
            }
        }
    }
}
