//! How a program gets a policy for its GIL: what is preloaded into one that starts, whether that
//! can work, and the control page of one that runs. Knows no Python, and nothing of recordings.

pub mod files;
pub mod hookable;
mod mapping;
pub mod namespaces;
mod no_page;
mod page;
pub mod preload;
pub mod signals;
mod started;
pub mod wake;

pub use no_page::NoPage;
pub use page::Page;
