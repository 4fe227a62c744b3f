//! Whom a wait is charged to: whoever held meanwhile, and nobody while nobody did.

use super::ended::Ended;
use super::history::History;
use super::hold::Hold;
use super::length::part;
use super::seat::{Seat, Wait};
use crate::record::ThreadId;

/// What one charge is counted in.
#[derive(Clone, Debug, Default)]
pub(super) struct Charges {
    /// Time by seat, all zero between charges,
    by_seat: Vec<u64>,
    /// and the seats in use.
    charged: Vec<u32>,
}

impl Charges {
    /// Charges the wait of the seat `victim` up to `at_ns`, and returns it with the thread that
    /// held longest during it.
    pub(super) fn settle(
        &mut self,
        seats: &mut [Seat],
        history: &History,
        holder: Option<&Hold>,
        ended: Option<&mut Vec<Ended>>,
        victim: u32,
        at_ns: u64,
    ) -> Option<(Wait, Option<ThreadId>)> {
        let wait = seats[victim as usize].wait?;
        let time = [wait.charged_ns, at_ns];
        let (newly, own_ns) = self.charge(seats, history, holder, ended, victim, time);
        let worst = wait.worst.into_iter().chain(newly).max_by_key(|&(_, ns)| ns);
        let own_ns = wait.own_ns.saturating_add(own_ns);
        let wait = Wait { charged_ns: wait.charged_ns.max(at_ns), worst, own_ns, ..wait };
        seats[victim as usize].wait = Some(wait);
        Some((wait, worst.map(|(thread, _)| thread)))
    }

    /// Charges the time between to whoever held in it; the rest to nobody. Returns who held
    /// longest, and for how long; and how much of all that was the holders' own. A hold that only
    /// began or ended in it counts in proportion, one that goes on does not.
    fn charge(
        &mut self,
        seats: &mut [Seat],
        history: &History,
        holder: Option<&Hold>,
        mut ended: Option<&mut Vec<Ended>>,
        victim: u32,
        [from_ns, to_ns]: [u64; 2],
    ) -> (Option<(ThreadId, u64)>, u64) {
        let Self { by_seat, charged } = self;
        if by_seat.len() < seats.len() {
            by_seat.resize(seats.len(), 0);
        }
        let mut own_ns = 0;
        let current = holder.map(|hold| hold.past(to_ns));
        for past in current.iter().chain(history.since(from_ns)) {
            let ns = past.end_ns.min(to_ns).saturating_sub(past.start_ns.max(from_ns));
            let sum = &mut by_seat[past.seat as usize];
            if *sum == 0 && ns > 0 {
                charged.push(past.seat);
            }
            *sum += ns;
            if past.own_ns > 0 {
                let length_ns = past.end_ns - past.start_ns;
                let is_whole = ns == length_ns;
                own_ns += if is_whole { past.own_ns } else { part(past.own_ns, ns, length_ns) };
            }
        }
        let mut nobody_ns = to_ns.saturating_sub(from_ns);
        let mut worst = None;
        for culprit in charged.drain(..) {
            let ns = std::mem::take(&mut by_seat[culprit as usize]);
            nobody_ns = nobody_ns.saturating_sub(ns);
            seats[victim as usize].blame.charge(culprit as usize, ns);
            if let Some((ended, by)) = ended.as_mut().zip(seats[victim as usize].thread) {
                let culprit = seats[culprit as usize].thread;
                ended.push(Ended::Charged { victim: by, culprit, ns });
            }
            if worst.is_none_or(|(_, most_ns)| ns > most_ns) {
                worst = seats[culprit as usize].thread.map(|thread| (thread, ns)).or(worst);
            }
        }
        let nobody = &mut seats[victim as usize].blame.nobody_ns;
        *nobody = nobody.saturating_add(nobody_ns);
        if let Some((ended, victim)) = ended.zip(seats[victim as usize].thread)
            && nobody_ns > 0
        {
            ended.push(Ended::Charged { victim, culprit: None, ns: nobody_ns });
        }
        (worst, own_ns)
    }
}
