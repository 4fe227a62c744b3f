//! Handles on their way from one process to another.
//!
//! A handle that is pickled is a [`Pin`]: where the object is, and a reference to it that the
//! sender's table keeps until somebody takes it over. The nonce tells that it is this pin and not a
//! later one in the same place. When the sender has ended, its table stays for its pins, until they
//! were all taken over; but not for ever, because nobody may ever come for them: the next collection
//! that somebody asks for gives them up, one that happens by itself after ten minutes, and so does a
//! process that finds the process table full.
//!
//! The same pickle can be unpickled many times. Later ones find the object while it is alive.

use crate::atomic::Ordering::Acquire;
use crate::chunk::{self, State};
use crate::header::{CHUNK, PROCESSES};
use crate::op::Op;
use crate::process_table::{self, FREE};
use crate::root_table::{self, Entry};
use crate::roots::{Root, Roots};
use crate::segment::{Offset, Segment};
use crate::{Error, Heap, Result, fault, object, size_class, slab};

/// A handle as it is sent: plain numbers, which the receiver does not trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Where the object is.
    pub at: Offset,
    /// Its serial number.
    pub serial: u32,
    /// The number of the sender in the process table.
    pub slot: u32,
    /// The entry in its table.
    pub index: u32,
    /// Random, and not 0.
    pub nonce: u64,
}

impl Heap {
    /// Makes a handle for another process, of an object that this one holds.
    ///
    /// # Errors
    /// [`Error::Stale`] if the object was made in a transaction that failed.
    pub fn pin(&self, root: &Root) -> Result<Pin> {
        let (at, serial) = (root.at(), root.serial());
        let slot = self.slot();
        self.change(|op| {
            if !object::retain_if_alive(&self.segment, at, serial)? {
                return Err(Error::Stale);
            }
            fault::point("pin: retained");
            let nonce = nonce();
            let entered =
                Roots::lock(op, slot).and_then(|roots| roots.enter(Entry { at, serial, nonce }));
            if entered.is_err() {
                op.release(at, serial);
            }
            let slot = u32::try_from(slot).expect("a slot's number is small");
            Ok(Pin { at, serial, slot, index: entered?, nonce })
        })
    }

    /// Whether handles that this process made were not adopted by anybody yet.
    pub fn has_pins(&self) -> Result<bool> {
        let op = self.op()?;
        let roots = Roots::lock(&op, self.slot())?;
        let has = root_table::has_pins(&self.segment, roots.slot);
        drop(roots);
        op.commit()?;
        Ok(has)
    }

    /// Holds the object of a handle from another process, or from this one.
    ///
    /// # Errors
    /// [`Error::Stale`] if the handle was adopted before, or given up after its sender's end, and the
    /// object is no more.
    pub fn adopt(&self, pin: &Pin) -> Result<Root> {
        self.change(|op| {
            // A pin that was taken over cannot be put back, so nothing is to fail after that.
            Roots::lock(op, self.slot())?.make_sure_of_room()?;
            let is_retained = is_block(&self.segment, pin.at)
                && (self.take_over(op, pin)?
                    || object::retain_if_alive(&self.segment, pin.at, pin.serial)?);
            if !is_retained {
                return Err(Error::Stale);
            }
            fault::point("pin: reference taken over");
            self.enter(op, pin.at, pin.serial)
        })
    }

    /// Makes the reference of a pin the caller's, if nobody else has done so.
    fn take_over(&self, op: &Op<'_>, pin: &Pin) -> Result<bool> {
        let slot = pin.slot as usize;
        if slot >= PROCESSES
            || process_table::slot(&self.segment, slot)?.state.load(Acquire) == FREE
        {
            return Ok(false);
        }
        let roots = Roots::lock(op, slot)?;
        roots.remove_pin(pin.index, &Entry { at: pin.at, serial: pin.serial, nonce: pin.nonce })
    }
}

/// Whether an object can begin at `at`, which somebody else says: nothing else is written to.
fn is_block(segment: &Segment, at: Offset) -> bool {
    let state = chunk::number(segment, at)
        .and_then(|chunk| State::from_word(chunk::state(segment, chunk)?.load(Acquire)));
    match state {
        Ok(State::Slab(class) | State::Retiring(class)) => {
            size_class::SIZES[usize::from(class)] >= object::SIZE
                && slab::is_taken(segment, at, class).unwrap_or(false)
        }
        Ok(State::Run(_)) => (at - segment.layout().data).is_multiple_of(CHUNK),
        _ => false,
    }
}

/// A number that nobody guesses, and that is not 0.
fn nonce() -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: the buffer is as long as said; 8 bytes are never refused or cut.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    u64::from_ne_bytes(bytes).max(1)
}
