//! Stretches of time.

use serde::Serialize;

/// A part of a trace. Every number of the report is of this part.
#[derive(Clone, Debug, Serialize)]
pub struct PartReport {
    /// When it is.
    #[serde(flatten)]
    pub window: Window,
    /// Holds of which only the piece within the part is counted: they began before it, or ended
    /// after it.
    pub cut_holds: u64,
    /// Waits likewise.
    pub cut_waits: u64,
}

/// A stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Since the start of the trace.
    pub start_s: f64,
    /// Likewise.
    pub end_s: f64,
    /// When it began, in ISO 8601 (UTC); `None` if the trace does not tell.
    pub started_at: Option<String>,
}

/// The worst window of what went on for longer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstWindow {
    /// When it is.
    #[serde(flatten)]
    pub window: Window,
    /// What the finding cost in it.
    pub cost_s: f64,
}
