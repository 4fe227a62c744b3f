//! Which native function a thread of another process is in, and who called it: down to the Python
//! frame that called native code.
//!
//! A thread that waits in a system call is not touched: `/proc` tells where it is. One that runs is
//! stopped (ptrace) for as long as it takes to copy its registers and its stack, which is some tens
//! of microseconds ([`stopped`]); all else happens afterwards, with the copy ([`unwinding`]). What
//! the tables for exceptions (`.eh_frame`) say of each function leads from one frame to the next.
//!
//! Functions are named by the symbols of their libraries, and by what Python calls them
//! ([`methods`]): of a library without symbols that is all there is.

mod refusal;
mod registers;
mod waiting;
mod stopped;
mod tables;
mod symbols;
mod calls;
mod methods;
mod module;
mod modules;
mod unwinding;
mod plumbing;
mod reader;

pub use reader::{Look, NativeFrame, NativeReader};
pub use refusal::Refusal;
/// What a filter of system calls does to who looks into another process.
pub use ungil_attach::filter;
