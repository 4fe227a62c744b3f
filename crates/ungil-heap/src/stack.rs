//! How much is left of the calling thread's stack.
//!
//! Values nest, and so do the functions that walk them. Python bounds how deep its own code may
//! go by counting, whatever the stack is: a thread with 64 KB of it dies of what the main thread
//! does easily. So here the stack itself is looked at.

use std::cell::Cell;
use std::mem::MaybeUninit;

use crate::{Error, Result};

/// What has to be left for anything that does not nest: an operation on the heap, and the code of
/// Python's that is called by it or calls it next.
pub const MARGIN: usize = 16 << 10;
/// What one level of a nested value takes at most, of any function that walks values.
pub const LEVEL: usize = 1 << 10;
/// Levels that are not worth a look: they fit into the margin.
pub const SHALLOW: usize = 4;

/// What to say where there is too little.
pub const TOO_DEEP: Error = Error::TooDeep("this is nested too deep for the stack of this thread");

/// Where the stack of a thread lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Unknown,
    /// It cannot be known.
    Nowhere,
    /// Where it begins, its lowest address that can be used, and its end.
    At(usize, usize, usize),
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Unknown) };
}

/// Whether there is enough of the stack for as many levels as this, and whatever else.
///
/// # Errors
/// [`Error::TooDeep`] if there is not.
#[inline]
pub fn check(levels: usize) -> Result<()> {
    if left() < MARGIN + levels * LEVEL { Err(TOO_DEEP) } else { Ok(()) }
}

/// Bytes that are left; as many as can be where that cannot be known, or where the calling code
/// runs on a stack that is not its thread's.
#[inline]
pub fn left() -> usize {
    let here = MaybeUninit::<u8>::uninit();
    let here = here.as_ptr().addr();
    let place = match PLACE.get() {
        Place::Unknown => find(here),
        place => place,
    };
    left_at(place, here)
}

/// The same for an address; nothing is left where none can be used.
#[inline]
fn left_at(place: Place, here: usize) -> usize {
    match place {
        Place::At(begin, first, end) if (begin..end).contains(&here) => here.saturating_sub(first),
        _ => usize::MAX,
    }
}

/// Finds the stack of the calling thread, in which `here` lies.
#[cold]
fn find(here: usize) -> Place {
    // For the main thread glibc reads all of /proc/self/maps, and musl tells what is in use so far,
    // though the kernel lets it grow.
    let place = of_growing(here).or_else(of_thread).unwrap_or_else(|| of_main_thread(here));
    PLACE.set(place);
    place
}

/// As the C library knows it.
fn of_thread() -> Option<Place> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: it has no conditions.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread is alive; initialised here if it succeeds, which is looked at.
    if unsafe { libc::pthread_getattr_np(thread, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut first, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    let known = attributes.as_ptr();
    // SAFETY: the attributes were initialised; the places to write to are alive.
    let mut failed = unsafe { libc::pthread_attr_getstack(known, &raw mut first, &raw mut size) };
    // SAFETY: as above.
    failed |= unsafe { libc::pthread_attr_getguardsize(known, &raw mut guard) };
    // SAFETY: initialised, and not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // Some versions count the guard as part of the stack, some do not.
    let begin = first.addr();
    let (first, end) = (begin.saturating_add(guard), begin.saturating_add(size));
    (failed == 0).then_some(Place::At(begin, first, end))
}

/// Where neither is known: what the limit leaves, below what is in use already.
fn of_main_thread(here: usize) -> Place {
    // Above lie the arguments and the environment, which count: the kernel gives them a quarter.
    limit().map_or(Place::Nowhere, |limit| {
        let end = here.saturating_add(limit / 4);
        let first = end.saturating_sub(limit);
        Place::At(first, first, end)
    })
}

/// The kernel leaves at least so much room for the stack that grows, whatever becomes of the limit
/// later (`MIN_GAP` in Linux's `mm/util.c` and `arch/x86/mm/mmap.c`).
const LEAST_GAP: usize = 128 << 20;

/// The stack on which the program began, which grows, if `here` is on it: below what the kernel has
/// left at its end. All others are far from there.
fn of_growing(here: usize) -> Option<Place> {
    // SAFETY: it has no conditions.
    let end = usize::try_from(unsafe { libc::getauxval(libc::AT_RANDOM) }).ok()?;
    let limit = limit()?.min(LEAST_GAP);
    let is_here = here < end && end - here < limit;
    let (begin, first) = (end.saturating_sub(limit), end.saturating_sub(limit - limit / 4));
    is_here.then_some(Place::At(begin, first, end))
}

/// How long the stack of the main thread may become, in bytes; `None` if it has no limit.
fn limit() -> Option<usize> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the place to write to is alive.
    if unsafe { libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: written by the call, which succeeded.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    usize::try_from(limit).ok().filter(|&limit| limit < usize::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn in_thread_of<T: Send + 'static>(bytes: usize, run: fn() -> T) -> T {
        thread::Builder::new().stack_size(bytes).spawn(run).unwrap().join().unwrap()
    }

    #[test]
    fn a_thread_has_as_much_left_as_it_was_given() {
        for bytes in [64 << 10, 512 << 10, 4 << 20] {
            let left = thread::Builder::new().stack_size(bytes).spawn(left).unwrap();
            let left = left.join().unwrap();
            // The C library may use the stack of an earlier thread again, of up to four times the size.
            assert!(left <= 4 * bytes && left + (16 << 10) > bytes, "{left} of {bytes}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(matches!(in_thread_of(64 << 10, || check(1_000)), Err(Error::TooDeep(_))));
        assert!(in_thread_of(4 << 20, || check(1_000)).is_ok());
    }

    #[test]
    fn the_stack_that_grows_is_told_from_those_of_threads() {
        // SAFETY: it has no conditions.
        let end = usize::try_from(unsafe { libc::getauxval(libc::AT_RANDOM) }).unwrap();
        let here = MaybeUninit::<u8>::uninit();
        assert!(of_growing(here.as_ptr().addr()).is_none(), "tests run in threads");
        if let Some(limit) = limit().map(|limit| limit.min(LEAST_GAP)) {
            let place = Place::At(end - limit, end - (limit - limit / 4), end);
            assert!(of_growing(end - limit / 2) == Some(place));
        }
    }

    #[test]
    fn nothing_is_left_below_what_can_be_used_and_elsewhere_nobody_knows() {
        let place = Place::At(100, 200, 300);
        let left = [299, 200, 199, 100].map(|here| left_at(place, here));
        assert_eq!(left, [99, 0, 0, 0]);
        assert_eq!([300, 99].map(|here| left_at(place, here)), [usize::MAX; 2]);
        assert_eq!(left_at(Place::Nowhere, 150), usize::MAX);
    }

    #[test]
    fn without_proc_the_limit_tells() {
        let here = MaybeUninit::<u8>::uninit();
        let here = here.as_ptr().addr();
        match of_main_thread(here) {
            Place::At(_, first, end) => assert!(first < here && here < end),
            place => assert!(place == Place::Nowhere),
        }
    }
}
