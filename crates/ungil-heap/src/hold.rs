//! Holding what is found in an object: a reference more before anybody could take the last one.
//!
//! What a reader waits for is exactly this: somebody who is changing the same object, and a
//! collection that is under way. It waits neither for who only reads the object, in a transaction for
//! example, nor for what somebody does elsewhere.

use crate::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use crate::atomic::fence;
use crate::hazard::{self, Taken};
use crate::object::{self, Kind};
use crate::op::Op;
use crate::roots::{Root, Roots};
use crate::segment::Offset;
use crate::{Error, Heap, Result, allocator, fault, memory};

/// How often a reader tries, before it waits for whoever has the object locked.
const TRIES: u32 = 16;

impl Heap {
    /// Holds the dict that everybody finds, which is made at the first call.
    pub fn root(&self) -> Result<Root> {
        let root = &self.segment.header().root;
        let op = self.op()?;
        if root.load(Acquire) == 0 {
            // No part of a transaction that is under way, which may fail.
            let at = allocator::take_needed(self, op.me(), object::SIZE)?;
            object::initialise(&self.segment, at, Kind::Dict)?;
            object::retain(&self.segment, at)?;
            fault::point("roots: dict made");
            if root.compare_exchange(0, at as u64, SeqCst, Relaxed).is_err() {
                object::forget(&self.segment, at)?;
                memory::free(&self.segment, &self.hints, at, object::SIZE)?;
            }
            fault::point("roots: dict published");
        }
        op.commit()?;
        // The header keeps its reference for ever, so the object needs no lock to be there.
        #[expect(clippy::cast_possible_truncation, reason = "64-bit machines only")]
        let at = root.load(Acquire) as Offset;
        let held = self.hold(None, || Ok(Some(at)))?;
        held.ok_or(Error::Corrupt("the heap has lost its root"))
    }

    /// Holds the object that `look` finds, if it finds one.
    ///
    /// `container` is what `look` reads: the object is there until it is held. Without a container,
    /// the caller vouches for that: it holds the object already, or made it in an operation that is
    /// still under way.
    ///
    /// # Errors
    /// Those of `look`; and [`Error::Full`] if there is no room for a larger table, not even
    /// in the reserve.
    pub fn hold(
        &self,
        container: Option<Offset>,
        mut look: impl FnMut() -> Result<Option<Offset>>,
    ) -> Result<Option<Root>> {
        let Some(container) = container else {
            return self.change(|op| match look()? {
                Some(at) => self.hold_in(op, at).map(Some),
                None => Ok(None),
            });
        };
        let look = |found: &mut Vec<Offset>| {
            found.extend(look()?);
            Ok(())
        };
        let ((), mut roots) = self.hold_all(container, look)?;
        Ok(roots.pop())
    }

    /// What `look` reads in `container`, and all objects that it finds there, held, in their order.
    /// What it sees may be changing: it is called again then.
    ///
    /// # Errors
    /// As those of [`Self::hold`].
    pub fn hold_all<T>(
        &self,
        container: Offset,
        mut look: impl FnMut(&mut Vec<Offset>) -> Result<T>,
    ) -> Result<(T, Vec<Root>)> {
        let mut roots = Vec::new();
        let held = self.change(|op| self.try_to_hold(op, container, &mut look, &mut roots));
        match held {
            Ok(seen) => Ok((seen, roots)),
            Err(error) => {
                self.release_some(&mut roots)?;
                Err(error)
            }
        }
    }

    fn try_to_hold<T>(
        &self,
        op: &mut Op<'_>,
        container: Offset,
        look: &mut dyn FnMut(&mut Vec<Offset>) -> Result<T>,
        roots: &mut Vec<Root>,
    ) -> Result<T> {
        let mut found = Vec::new();
        // What a transaction reads is guarded until it ends.
        if !op.is_in_transaction() {
            for _ in 0..TRIES {
                self.release_some(roots)?;
                if op.try_guard(container)? {
                    break;
                }
                if let Some(seen) = self.hold_unguarded(op, container, look, &mut found, roots)? {
                    return Ok(seen);
                }
                std::hint::spin_loop();
            }
        }
        self.release_some(roots)?;
        op.guard(container)?;
        found.clear();
        let seen = look(&mut found)?;
        for &at in &found {
            roots.push(self.hold_in(op, at)?);
        }
        Ok(seen)
    }

    /// Holds what is found in an object that somebody else has locked; `None` if it is being changed,
    /// or was meanwhile.
    fn hold_unguarded<T>(
        &self,
        op: &mut Op<'_>,
        container: Offset,
        look: &mut dyn FnMut(&mut Vec<Offset>) -> Result<T>,
        found: &mut Vec<Offset>,
        roots: &mut Vec<Root>,
    ) -> Result<Option<T>> {
        let segment = &self.segment;
        let version = &object::head(segment, container)?.version;
        let before = version.load(Acquire);
        if before & 1 == 1 {
            return Ok(None);
        }
        found.clear();
        let seen = look(found);
        fence(Acquire);
        if version.load(Relaxed) != before {
            return Ok(None);
        }
        let seen = seen?;
        let places = &*segment.header().hazards;
        for &at in &*found {
            let life = &object::head(segment, at)?.life;
            match hazard::retain(places, op.me().lane(), at, (version, before), life) {
                Taken::Serial(serial) => {
                    fault::point("roots: retained");
                    roots.push(self.enter(op, at, serial)?);
                }
                Taken::Changed | Taken::Crowded => return Ok(None),
            }
        }
        Ok(Some(seen))
    }

    /// Holds an object that `work` makes. What is made and not held by anybody, or referred to by
    /// something that is, is garbage as soon as the operation ends.
    pub fn make<'h>(&'h self, mut work: impl FnMut(&mut Op<'h>) -> Result<Offset>) -> Result<Root> {
        self.change(|op| {
            let at = work(op)?;
            self.hold_in(op, at)
        })
    }

    /// Holds the objects that `work` makes, in their order, as [`Self::make`] does with one.
    pub fn make_all<'h>(
        &'h self,
        mut work: impl FnMut(&mut Op<'h>) -> Result<Vec<Offset>>,
    ) -> Result<Vec<Root>> {
        let mut roots = Vec::new();
        let made = self.change(|op| {
            self.release_some(&mut roots)?;
            for at in work(op)? {
                roots.push(self.hold_in(op, at)?);
            }
            Ok(())
        });
        if made.is_err() {
            self.release_some(&mut roots)?;
        }
        made.map(|()| roots)
    }

    /// Holds an object no longer, which is destroyed if nobody else has a reference to it. In a
    /// transaction that happens when it ends.
    #[expect(clippy::needless_pass_by_value, reason = "a root is given back once")]
    pub fn release(&self, root: Root) -> Result<()> {
        if self.release_shared(&root)? {
            return Ok(());
        }
        let mut op = self.op()?;
        let roots = Roots::lock(&op, self.slot())?;
        let is_held = roots.has(&root)?;
        if is_held {
            roots.release(&root)?;
        }
        drop(roots);
        if is_held {
            op.release(root.at(), root.serial());
        }
        op.commit()
    }

    fn hold_in(&self, op: &mut Op<'_>, at: Offset) -> Result<Root> {
        let serial = object::retain(&self.segment, at)?;
        fault::point("roots: retained");
        self.enter(op, at, serial)
    }

    fn release_some(&self, roots: &mut Vec<Root>) -> Result<()> {
        roots.drain(..).try_for_each(|root| self.release(root))
    }
}
