//! The same of a free-threaded interpreter, which py-spy does not know.

use std::io;

use super::{Holder, ThreadName, ThreadStack};
use crate::free_threaded::FreeThreaded;

/// `cond` and what comes before it in the struct of a GIL are within so many bytes.
const GIL_BYTES: u64 = 64;

/// The thread that has the GIL, if that is on.
pub(super) fn holders(interpreter: &FreeThreaded) -> io::Result<Vec<Holder>> {
    let holder = interpreter.holder()?.map(|(gil, thread)| Holder {
        gil: Some(gil..gil.wrapping_add(GIL_BYTES)),
        ident: thread.ident,
        in_main: true,
        frames: thread.frames,
        callers: Vec::new(),
    });
    Ok(holder.into_iter().collect())
}

/// The names of all threads.
pub(super) fn names(interpreter: &FreeThreaded) -> io::Result<Vec<ThreadName>> {
    let names = interpreter.names()?;
    Ok(names.into_iter().map(|(ident, name)| ThreadName { ident, name }).collect())
}

/// What all threads do.
pub(super) fn everyone(interpreter: &FreeThreaded) -> io::Result<Vec<ThreadStack>> {
    // One that has imported no threading has no names.
    let names = interpreter.names().unwrap_or_default();
    let threads = interpreter.threads()?.into_iter().map(|thread| ThreadStack {
        ident: thread.ident,
        tid: Some(thread.tid).filter(|&tid| tid != 0),
        name: names.iter().find(|it| it.0 == thread.ident).map(|it| it.1.clone()),
        owns_gil: thread.owns_gil,
        frames: thread.frames,
    });
    Ok(threads.collect())
}
