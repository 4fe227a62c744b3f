//! From rings to report: the recorder that drains traced processes, the trace file (a Perfetto
//! trace), and the analysis that says who waited for whom. Knows no Python.

pub mod analysis;
pub mod child;
mod clock;
mod dense;
mod lock;
mod origin;
pub mod perfetto;
pub mod record;
pub mod recorder;
pub mod report;
#[cfg(feature = "stacks")]
pub mod stacks;
pub mod timeline;
pub mod wall_clock;

pub use record::Record;
