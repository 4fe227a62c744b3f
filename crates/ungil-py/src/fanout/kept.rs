//! What a thread waits for whose time is over: what it asked for, or only to go on.

use std::ops::Range;
use std::sync::LazyLock;

use pyo3::prelude::*;

use crate::loader::symbol;

/// Where the interpreter has its GIL: `_PyRuntime`, and what follows it in the same segment.
static RUNTIME: LazyLock<Option<Range<u64>>> = LazyLock::new(|| {
    let start = symbol(libc::RTLD_DEFAULT, c"_PyRuntime")? as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let from = u64::from_str_radix(from, 16).ok()?;
        let to = u64::from_str_radix(to, 16).ok()?;
        (from..to).contains(&start).then_some(start..to)
    })
});

/// How long a thread has used a processor, ns, if it waits for nothing but a processor or the GIL;
/// None if it waits for something else, or the kernel does not say.
#[pyfunction]
pub fn kept_waiting(native_id: u32) -> Option<u64> {
    let read = |name| std::fs::read_to_string(format!("/proc/self/task/{native_id}/{name}")).ok();
    let call = read("syscall")?;
    let mut words = call.split_whitespace();
    let is_kept = match words.next()? {
        "running" => true,
        number => {
            let word = words.next().and_then(|word| word.strip_prefix("0x"));
            let word = u64::from_str_radix(word.unwrap_or_default(), 16).ok();
            number.parse() == Ok(libc::SYS_futex)
                && RUNTIME.as_ref().zip(word).is_some_and(|(gil, word)| gil.contains(&word))
        }
    };
    if !is_kept {
        return None;
    }
    read("schedstat")?.split_whitespace().next()?.parse().ok()
}
