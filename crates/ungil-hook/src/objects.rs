//! Whose lock it is that a thread of a free-threaded interpreter waits for.
//!
//! Every object of such a build has a lock (`Include/object.h`):
//! ```text
//! struct _object {
//!     uintptr_t ob_tid; uint16_t _padding; PyMutex ob_mutex; uint8_t ob_gc_bits;
//!     uint32_t ob_ref_local; Py_ssize_t ob_ref_shared; PyTypeObject *ob_type;
//! };
//! ```
//! Objects lie at multiples of 16, so their locks, and hardly any other, lie 10 bytes after one. The
//! object is there: the waiting thread is about to change it. `threading.Lock` begins with such an
//! object, and its own lock comes right behind.
//!
//! What looks like an object may be none all the same, so nothing is read but by a system call that
//! would say that there is nothing.

use crate::system::current_pid;
use crate::table;
use libc::{c_void, iovec};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use ungil_core::park::Cause;
use ungil_core::table::{TYPES, TypeName, store_text};

const ALIGNMENT: usize = 16;
/// `ob_mutex`, `ob_type`, and the end of an object without fields.
const OBJECT_TO_LOCK: usize = 10;
const OBJECT_TO_TYPE: usize = 24;
const OBJECT_BYTES: usize = 32;
/// `tp_name`, after `PyVarObject`.
const TYPE_TO_NAME: usize = 40;
/// What is kept of a name, with a NUL.
const NAME_BYTES: usize = 32;

/// The name of a type.
type Name = [u8; NAME_BYTES];

/// What kind of lock is at `address`, and the number of the type of the object whose it is, or 0.
pub fn holder_of_lock(address: usize) -> (Cause, u8) {
    if address % ALIGNMENT == OBJECT_TO_LOCK {
        let named = type_of(address - OBJECT_TO_LOCK).and_then(|of| Some((of, name_of(of)?)));
        return (Cause::Object, named.map_or(0, |(of, name)| number_of(of, &name)));
    }
    let Some(of) = type_of(address.wrapping_sub(OBJECT_BYTES)) else {
        return (Cause::Internal, 0);
    };
    let Some(name) = name_of(of) else { return (Cause::Internal, 0) };
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
    match &name[..length] {
        b"_thread.lock" | b"_thread.RLock" => (Cause::Lock, number_of(of, &name)),
        b"_queue.SimpleQueue" => (Cause::Event, number_of(of, &name)),
        _ => (Cause::Internal, 0),
    }
}

fn type_of(object: usize) -> Option<usize> {
    word_at(object.wrapping_add(OBJECT_TO_TYPE)).filter(|of| of % align_of::<usize>() == 0)
}

fn name_of(of: usize) -> Option<Name> {
    let address = word_at(of.wrapping_add(TYPE_TO_NAME))?;
    let mut name = [0; NAME_BYTES];
    // The page after the one in which it begins need not be there.
    let until_page = 4096 - address % 4096;
    let length = (NAME_BYTES - 1).min(until_page);
    if !read_at(address, &mut name[..length]) {
        return None;
    }
    if length < NAME_BYTES - 1 && !name[..length].contains(&0) {
        let rest = &mut name[length..NAME_BYTES - 1];
        if !read_at(address + length, rest) {
            rest.fill(0);
        }
    }
    let end = name.iter().position(|&byte| byte == 0)?;
    name[end..].fill(0);
    let is_text = end > 0 && name[..end].iter().all(|&byte| byte > b' ' && byte != 0x7f);
    is_text.then_some(name)
}

/// The number of the type at `of` in this process's table, which it is given; 0 if there is none left.
fn number_of(of: usize, name: &Name) -> u8 {
    let Some(table) = table::own() else { return 0 };
    let address = of as u64;
    for (place, number) in table.header().types.iter().zip(1..) {
        if take(place, address, name) {
            return number;
        }
    }
    0
}

const _: () = assert!(TYPES <= u8::MAX as usize);

/// Whether `place` is of the type at `address`, as it becomes if it was nobody's.
fn take(place: &TypeName, address: u64, name: &Name) -> bool {
    match place.address.compare_exchange(0, address, Acquire, Relaxed) {
        Ok(_) => {
            store_text(&place.name, name);
            true
        }
        Err(taken) => taken == address,
    }
}

fn word_at(address: usize) -> Option<usize> {
    let mut word = [0; size_of::<usize>()];
    read_at(address, &mut word).then(|| usize::from_ne_bytes(word)).filter(|&word| word != 0)
}

/// Copies what is at `address`, and says whether all of it could be read.
fn read_at(address: usize, into: &mut [u8]) -> bool {
    let here = iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let there = iovec { iov_base: address as *mut c_void, iov_len: into.len() };
    let pid = current_pid().cast_signed();
    // SAFETY: one valid range on either side; that of `address` is checked by the kernel.
    let read = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(read).is_ok_and(|read| read == into.len())
}
