//! A table for ids that count up from 0.

/// How far an id may lie beyond all earlier ones; a larger step comes from a corrupt trace and
/// must not cost memory.
const LARGEST_STEP: usize = 65_536;

/// Items by id. A removed item leaves one word.
#[derive(Debug)]
pub(crate) struct Dense<T> {
    items: Vec<Option<Box<T>>>,
}

impl<T> Dense<T> {
    pub(crate) const fn new() -> Self {
        Self { items: Vec::new() }
    }

    /// Puts `item` under `id` and says whether it could: the id is free and not absurd.
    pub(crate) fn insert(&mut self, id: u32, item: T) -> bool {
        let index = id as usize;
        if index >= self.items.len() {
            if index - self.items.len() > LARGEST_STEP {
                return false;
            }
            self.items.resize_with(index + 1, || None);
        }
        let place = &mut self.items[index];
        if place.is_some() {
            return false;
        }
        *place = Some(Box::new(item));
        true
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.items.get(id as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.items.get_mut(id as usize)?.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Box<T>> {
        self.items.get_mut(id as usize)?.take()
    }

    /// A table of what `make` makes of these items, under the same ids.
    pub(crate) fn filter_map<U>(&self, mut make: impl FnMut(&T) -> Option<U>) -> Dense<U> {
        let items = self.items.iter();
        let items = items.map(|item| item.as_deref().and_then(&mut make).map(Box::new)).collect();
        Dense { items }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().filter_map(Option::as_deref_mut)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter().filter_map(Option::as_deref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_found_under_its_id_until_it_is_removed() {
        let mut table = Dense::new();
        assert!(table.insert(3, 'c') && table.insert(0, 'a'));
        assert!(!table.insert(3, 'x'), "the id is taken");
        assert_eq!((table.get(3), table.get(1), table.get(9)), (Some(&'c'), None, None));
        assert_eq!(table.remove(3).map(|item| *item), Some('c'));
        assert_eq!(table.get_mut(3), None);
        assert_eq!(table.iter().collect::<String>(), "a");
    }

    #[test]
    fn an_absurd_id_is_refused_before_it_costs_memory() {
        let mut table = Dense::new();
        assert!(!table.insert(u32::MAX, ()));
        assert_eq!(table.items.capacity(), 0);
    }
}
