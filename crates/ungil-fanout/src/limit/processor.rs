//! What this process itself can do: processor time per item, and Little's law.

/// What was measured of the processor, and what follows for the limit.
#[derive(Debug, Default)]
pub(super) struct Processor {
    /// Processor time of the process, ns, as of the latest item.
    cpu: u64,
    /// The same, the time, and the starts and ends so far, when the round began.
    mark: Option<(u64, u64, u64)>,
    events: u64,
    /// Of the items that ended in this round.
    waited_ns: f32,
    ended: u32,
    /// Processor time of an item, ns.
    pub per_item_ns: Option<f32>,
    /// The mean latency of an item while the processor had time for it, ns.
    pub wait_ns: Option<f32>,
    /// The share of a processor that was in use.
    pub busy: f32,
}

/// From here on the processor is what latencies are made of.
const BUSY: f32 = 0.9;

impl Processor {
    pub fn started(&mut self) {
        self.events += 1;
    }

    pub fn finished(&mut self, now: u64, cpu_so_far: u64, latency_ns: f32) {
        self.events += 1;
        self.cpu = self.cpu.max(cpu_so_far);
        self.waited_ns += latency_ns;
        self.ended += 1;
        if self.mark.is_none() {
            self.mark = Some((self.cpu, now, self.events));
        }
    }

    /// A round is over. Says what an item took in it on average, ns.
    pub fn round(&mut self, now: u64) -> Option<f32> {
        let (cpu, began, events) = self.mark.replace((self.cpu, now, self.events))?;
        let (used, took) = ((self.cpu - cpu) as f32, now.saturating_sub(began) as f32);
        // An item is a start and an end.
        let items = (self.events - events) as f32 / 2.0;
        if used > 0.0 && took > 0.0 && items > 0.0 {
            self.busy = used / took;
            let latest = used / items;
            let usual = self.per_item_ns.unwrap_or(latest);
            self.per_item_ns = Some(usual + 0.3 * (latest - usual));
        }
        let wait = (self.ended > 0).then(|| self.waited_ns / self.ended as f32);
        if self.busy < BUSY || self.wait_ns.is_none() {
            self.wait_ns = wait.or(self.wait_ns);
        }
        (self.waited_ns, self.ended) = (0.0, 0);
        wait
    }

    /// Little's law: how many items keep one processor busy, times two, because the waits differ.
    pub fn little(&self) -> Option<f32> {
        Some(2.0 * self.wait_ns? / self.per_item_ns?)
    }

    /// The level that the processor allows, if it is in sight.
    pub fn cap(&self) -> f32 {
        match self.little() {
            Some(little) if self.busy > 0.7 => little,
            _ => f32::INFINITY,
        }
    }
}
