//! From rings to report: the recorder that drains traced processes, the trace file (a Perfetto
//! trace), and the analysis that says who waited for whom. Knows no Python.

mod flock;
mod clock;
mod signals;
pub mod wall_clock;
mod dense;
mod quantile;
pub mod record;
pub mod origin;
mod numbers;
mod free_threaded;
pub mod report;
pub mod analysis;
pub mod timeline;
pub mod perfetto;
pub mod page;
pub mod prompt;
pub mod child;
#[cfg(feature = "stacks")]
pub mod stacks;
pub mod flight;
pub mod recorder;

pub use quantile::quantile;
pub use record::Record;
