//! What the scheduler promises, shown in virtual time, and what the line promises, in every order.

#[cfg(not(loom))]
mod handovers;
mod interleavings;
mod model;
#[cfg(not(loom))]
mod properties;
#[cfg(not(loom))]
mod queues;
#[cfg(not(loom))]
mod scenarios;
#[cfg(not(loom))]
mod simulation;
#[cfg(not(loom))]
mod workload;
