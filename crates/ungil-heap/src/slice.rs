//! Indices and slices as Python counts them.

/// `[start:stop:step]`, with what `slice.indices` makes of absent parts: as `PySlice_Unpack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first index.
    pub start: isize,
    /// The index before which it ends, or after which for a step below zero.
    pub stop: isize,
    /// From one index to the next; not 0.
    pub step: isize,
}

/// Indices that exist: of a slice within a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first one. For a step of 1 also where new values would be inserted.
    pub start: usize,
    /// How many there are.
    pub count: usize,
    /// From one to the next.
    pub step: isize,
}

impl Slice {
    /// Everything.
    pub const ALL: Self = Self { start: 0, stop: isize::MAX, step: 1 };

    /// `[start:stop]`.
    pub const fn new(start: isize, stop: isize) -> Self {
        Self { start, stop, step: 1 }
    }

    /// Which indices it means in a sequence of `length`. A step of 0 is taken for 1.
    #[expect(clippy::cast_possible_wrap, reason = "no sequence is that long")]
    pub fn within(self, length: usize) -> Part {
        let step = if self.step == 0 { 1 } else { self.step };
        let last = length as isize;
        // Where a walk backwards begins and ends, at the lowest and the highest.
        let (low, high) = if step < 0 { (-1, last - 1) } else { (0, last) };
        let bound = |index: isize| {
            let index = if index < 0 { index.saturating_add(last) } else { index };
            index.clamp(low, high.max(low))
        };
        let (start, stop) = (bound(self.start), bound(self.stop));
        let distance = if step < 0 { start - stop } else { stop - start };
        let count = match usize::try_from(distance) {
            Ok(distance) => distance.div_ceil(step.unsigned_abs()),
            Err(_) => 0,
        };
        Part { start: usize::try_from(start).unwrap_or(0), count, step }
    }
}

impl Part {
    /// The indices in their order.
    pub fn indices(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |number| {
            let distance = number * self.step.unsigned_abs();
            if self.step < 0 { self.start - distance } else { self.start + distance }
        })
    }

    /// The indices from the lowest to the highest.
    pub fn ascending(self) -> impl Iterator<Item = usize> {
        let width = self.step.unsigned_abs();
        let low = if self.step < 0 {
            self.start - self.count.saturating_sub(1) * width
        } else {
            self.start
        };
        (0..self.count).map(move |number| low + number * width)
    }
}

/// The place that an index means in a sequence of `length`, if it exists.
#[inline]
pub const fn index(index: isize, length: usize) -> Option<usize> {
    let place = if index < 0 { length.wrapping_add_signed(index) } else { index.unsigned_abs() };
    if place < length { Some(place) } else { None }
}

/// The place that an index means as a border between values.
#[inline]
pub const fn clamp(index: isize, length: usize) -> usize {
    let place =
        if index < 0 { length.saturating_sub(index.unsigned_abs()) } else { index.unsigned_abs() };
    if place < length { place } else { length }
}
