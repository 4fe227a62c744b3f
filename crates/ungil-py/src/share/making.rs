//! Objects that have to be made in a heap, once Python has nothing more to say about them.

use pyo3::prelude::*;
use ungil_heap::deque::End;
use ungil_heap::op::Op;
use ungil_heap::segment::Offset;
use ungil_heap::value::Value;
use ungil_heap::{deque, dict, list, set};

use super::array::Array;
use super::buffer::Buffer;
use super::queue;
use super::structs;
use super::sync;

/// A value that is not in the heap yet, with the objects that have to be made for it.
pub enum Draft<'a> {
    /// Nothing has to be made.
    Value(Value<'a>),
    /// The object with this number among those to be made.
    New(usize),
    /// A tuple with something to be made in it.
    Tuple(Vec<Draft<'a>>),
}

/// An object that has to be made.
pub enum New<'a> {
    Dict(Vec<(Draft<'a>, Draft<'a>)>),
    List(Vec<Draft<'a>>),
    /// With the values of its fields.
    Struct(structs::Making, Vec<Draft<'a>>),
    /// With the lock of a condition.
    Sync(sync::Making, Option<Draft<'a>>),
    Set(Vec<Draft<'a>>),
    /// With the number of items that it can have.
    Deque(Vec<Draft<'a>>, Option<usize>),
    Queue(queue::Making),
    Array(Py<Array>),
    Buffer(Py<Buffer>),
}

/// Makes what has to be made, as part of an operation; where the objects are, by their numbers.
///
/// First all of them, empty, because they may contain each other; then what is in them.
pub fn make<'a>(drafted: &[New<'a>], op: &mut Op<'_>) -> ungil_heap::Result<Vec<Offset>> {
    let mut made = Vec::with_capacity(drafted.len());
    for new in drafted {
        made.push(match new {
            New::Dict(_) => dict::create(op)?,
            New::List(_) => list::create(op)?,
            New::Struct(making, fields) => {
                let known = |field: &Draft<'a>| match field {
                    Draft::Value(value) => Some(value.clone()),
                    Draft::New(_) | Draft::Tuple(_) => None,
                };
                making.create(op, fields.iter().map(known))?
            }
            New::Sync(making, lock) => {
                let lock = lock.as_ref().map(|lock| finished(lock, &made));
                let lock = lock.and_then(|lock| match lock {
                    Value::Object(at) => Some(at),
                    _ => None,
                });
                making.create(op, lock)?
            }
            New::Set(_) => set::create(op)?,
            New::Deque(_, limit) => deque::create(op, *limit)?,
            New::Queue(making) => making.create(op)?,
            New::Array(array) => array.get().create(op)?,
            New::Buffer(buffer) => buffer.get().create(op)?,
        });
    }
    for (new, &at) in drafted.iter().zip(&made) {
        match new {
            New::Dict(pairs) => {
                let pairs: Vec<_> = pairs
                    .iter()
                    .map(|(key, value)| (finished(key, &made), finished(value, &made)))
                    .collect();
                dict::update_in(op, at, &pairs)?;
            }
            New::List(items) => {
                let items: Vec<_> = items.iter().map(|item| finished(item, &made)).collect();
                list::extend(op.heap(), at, &items)?;
            }
            New::Struct(making, fields) => {
                for (index, field) in fields.iter().enumerate() {
                    if !matches!(field, Draft::Value(_)) {
                        making.complete(op.heap(), at, index, &finished(field, &made))?;
                    }
                }
            }
            New::Sync(..) | New::Queue(_) | New::Array(_) | New::Buffer(_) => {}
            New::Set(members) => {
                let members: Vec<_> =
                    members.iter().map(|member| finished(member, &made)).collect();
                set::update_in(op, at, &members)?;
            }
            New::Deque(items, _) => {
                let items: Vec<_> = items.iter().map(|item| finished(item, &made)).collect();
                deque::extend(op.heap(), at, End::Right, &items)?;
            }
        }
    }
    Ok(made)
}

/// The value of a draft, when what had to be made has been.
pub fn finished<'a>(draft: &Draft<'a>, made: &[Offset]) -> Value<'a> {
    match draft {
        Draft::Value(value) => value.clone(),
        Draft::New(number) => Value::Object(made[*number]),
        Draft::Tuple(items) => {
            Value::Tuple(items.iter().map(|item| finished(item, made)).collect())
        }
    }
}
