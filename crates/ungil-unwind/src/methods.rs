//! What Python calls the native functions of an image.
//!
//! Extensions, and the interpreter itself, list what they give to Python in arrays of `PyMethodDef`
//! (name, function, flags, documentation), to which a module (`PyModuleDef`) or a type
//! (`PyTypeObject`, or the slots of a `PyType_Spec`) points. They are in the data of the image, in
//! builds without any symbol as well. All of their layouts are the same from Python 3.5 on; those
//! that limited-API extensions may use cannot change.
//!
//! What makes the objects of a type (`tp_new`, `tp_init`, `tp_vectorcall`) is called by the name of
//! the type.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ungil_attach::memory::Memory;

use crate::tables::Headers;

/// Of larger images only the parts that are not beyond this are searched.
const MOST_BYTES: u64 = 64 << 20;
/// A method is called by its arguments (`METH_VARARGS`, `METH_NOARGS`, `METH_O`, `METH_FASTCALL`).
const CALLED_BY: u64 = 0x1 | 0x4 | 0x8 | 0x80;
/// All flags of a method (`Include/methodobject.h`).
const FLAGS: u64 = 0x3ff;
/// `Py_tp_methods`, `Py_tp_init` and `Py_tp_new` of `Include/typeslots.h`.
const TP_METHODS: u64 = 64;
const TP_INIT: u64 = 60;
const TP_NEW: u64 = 65;
/// There are fewer slots.
const MOST_SLOTS: u64 = 128;
/// A `PyMethodDef` in words.
const WORDS: usize = 4;
/// From the pointer to its methods back to the name of a module (`m_methods`, `m_name`), and of a
/// type (`tp_methods`, `tp_name`), in words.
const MODULE_NAME: usize = 3;
const TYPE_NAME: usize = 26;
/// From the beginning of a type to the pointer to its methods (`tp_methods`), to the type that it
/// inherits from (`tp_base`), and to what makes its objects (`tp_init`, `tp_new`, and from 3.8 on
/// `tp_vectorcall`), in words. In older ones the next object begins there, seldom with a function.
const METHODS: usize = 29;
const BASE: usize = 32;
const MAKERS: [usize; 3] = [37, 39, 50];
/// From the pointer to the slots back to the name in a `PyType_Spec`, in words.
const SPEC_NAME: usize = 3;
const LONGEST_NAME: usize = 128;

/// Names by the address of the function.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Methods(HashMap<u64, String>);

impl Methods {
    /// Searches the data of an image. What cannot be read has none.
    pub fn read(memory: &Memory, headers: &Headers) -> Self {
        let mut left = MOST_BYTES;
        let parts = headers.data().into_iter().filter_map(|range| {
            let length = range.end.saturating_sub(range.start);
            left = left.checked_sub(length)?;
            let start = range.start.checked_next_multiple_of(8)?;
            let mut bytes = vec![0; usize::try_from(length).ok()?];
            let length = memory.up_to(start, &mut bytes).ok()?;
            let words = bytes[..length].chunks_exact(8);
            let words = words.map(|it| u64::from_le_bytes(it.try_into().unwrap_or_default()));
            Some((start, words.collect()))
        });
        let text = |address| name_at(memory, address);
        let data = Data { parts: parts.collect(), code: headers.code(), whole: headers.whole() };
        Self(data.methods(&text))
    }

    /// What Python calls the function at `address`: `re.Pattern.match`, or `match` alone if it is
    /// not known of what.
    pub fn name_of(&self, address: u64) -> Option<&str> {
        self.0.get(&address).map(String::as_str)
    }
}

/// A text in memory, if it may be a name.
fn name_at(memory: &Memory, address: u64) -> Option<String> {
    let mut bytes = [0; LONGEST_NAME];
    let length = memory.up_to(address, &mut bytes).ok()?;
    let end = bytes[..length].iter().position(|&byte| byte == 0)?;
    let name = str::from_utf8(&bytes[..end]).ok()?;
    let is_name = name.split('.').all(is_identifier);
    is_name.then(|| name.to_owned())
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|it| it.is_alphabetic() || it == '_');
    begins && characters.all(|it| it.is_alphanumeric() || it == '_')
}

struct Data {
    /// Stretches of words with their addresses.
    parts: Vec<(u64, Vec<u64>)>,
    code: Vec<Range<u64>>,
    whole: Range<u64>,
}

impl Data {
    fn methods(&self, text: &impl Fn(u64) -> Option<String>) -> HashMap<u64, String> {
        let mut found: Vec<(u64, u64, String)> = Vec::new();
        let mut names: HashMap<u64, Option<String>> = HashMap::new();
        for (start, words) in &self.parts {
            for (index, definition) in words.windows(WORDS).enumerate() {
                if let &[name, function, flags, documentation] = definition
                    && self.may_be_method(name, function, flags, documentation)
                    && let Some(name) = names
                        .entry(name)
                        .or_insert_with(|| text(name).filter(|it| is_identifier(it)))
                {
                    found.push((start + 8 * index as u64, function, name.clone()));
                }
            }
        }
        // Those that follow one another are one array.
        let places: HashSet<u64> = found.iter().map(|it| it.0).collect();
        let size = 8 * WORDS as u64;
        let first = |mut at: u64| {
            while at >= size && places.contains(&(at - size)) {
                at -= size;
            }
            at
        };
        let arrays: HashSet<u64> = found.iter().map(|it| first(it.0)).collect();
        let owners = self.owners(&arrays, text);
        let mut methods = HashMap::new();
        for (at, function, name) in found {
            let name = match owners.get(&first(at)).map(String::as_str) {
                Some(owner) => format!("{owner}.{name}"),
                None => name,
            };
            methods.entry(function).or_insert(name);
        }
        for (function, owner) in self.makers(&arrays, &owners) {
            methods.entry(function).or_insert(owner);
        }
        methods
    }

    /// What makes the objects of the types with these methods, with the name of the one type that has
    /// it and did not inherit it.
    fn makers(&self, arrays: &HashSet<u64>, owners: &HashMap<u64, String>) -> Vec<(u64, String)> {
        // By type: that it inherits from, with its own name and makers. Where one is described by a
        // list of slots, nothing is known of another one.
        let mut types: HashMap<u64, (u64, &String, Vec<u64>)> = HashMap::new();
        let is_code = |function: &u64| self.code.iter().any(|it| it.contains(function));
        for (start, words) in &self.parts {
            for (index, array) in words.iter().enumerate().filter(|(_, it)| arrays.contains(it)) {
                let Some(owner) = owners.get(array) else { continue };
                let slot = |at: usize| (words[at] & 0xffff_ffff, words.get(at + 1).copied());
                let (address, base, makers): (_, _, Vec<u64>) =
                    if index > 0 && slot(index - 1).0 == TP_METHODS {
                        let after =
                            (index + 1..words.len()).step_by(2).take_while(|at| slot(*at).0 != 0);
                        let all = slots_around(words, index - 1).chain(after);
                        let makers = all.map(slot).filter(|it| matches!(it.0, TP_INIT | TP_NEW));
                        (index, 0, makers.filter_map(|it| it.1).collect())
                    } else if let Some(first) = index.checked_sub(METHODS) {
                        let word = |at: usize| words.get(first + at).copied();
                        let makers = MAKERS.iter().filter_map(|at| word(*at));
                        (first, word(BASE).unwrap_or_default(), makers.collect())
                    } else {
                        continue;
                    };
                let makers = makers.into_iter().filter(is_code).collect();
                types.insert(start + 8 * address as u64, (base, owner, makers));
            }
        }
        let mut named: HashMap<u64, Option<&String>> = HashMap::new();
        for (base, owner, makers) in types.values() {
            let inherited = types.get(base).map_or(&[][..], |(.., makers)| makers);
            for maker in makers.iter().filter(|it| !inherited.contains(it)) {
                let name = named.entry(*maker).or_insert(Some(owner));
                *name = name.filter(|it| *it == *owner);
            }
        }
        named.into_iter().filter_map(|(maker, name)| Some((maker, name?.clone()))).collect()
    }

    fn may_be_method(&self, name: u64, function: u64, flags: u64, documentation: u64) -> bool {
        // The upper half of the word is no part of the flags.
        let flags = flags & 0xffff_ffff;
        self.whole.contains(&name)
            && self.code.iter().any(|it| it.contains(&function))
            && flags & !FLAGS == 0
            && flags & CALLED_BY != 0
            && (documentation == 0 || self.whole.contains(&documentation))
    }

    /// The names of the modules and types that point to these arrays.
    fn owners(
        &self,
        arrays: &HashSet<u64>,
        text: &impl Fn(u64) -> Option<String>,
    ) -> HashMap<u64, String> {
        let mut owners = HashMap::new();
        let mut slots: HashMap<u64, u64> = HashMap::new();
        for (start, words) in &self.parts {
            for (index, array) in words.iter().enumerate().filter(|(_, it)| arrays.contains(it)) {
                let back = |by: usize| index.checked_sub(by).map(|it| words[it]);
                let named = |by: usize| text(back(by).filter(|it| self.whole.contains(it))?);
                if back(1).is_some_and(|slot| slot & 0xffff_ffff == TP_METHODS) {
                    let list = slots_around(words, index - 1).map(|it| start + 8 * it as u64);
                    slots.extend(list.map(|at| (at, *array)));
                } else if let Some(name) = named(MODULE_NAME).or_else(|| named(TYPE_NAME)) {
                    owners.entry(*array).or_insert(name);
                }
            }
        }
        for (_, words) in &self.parts {
            for (index, list) in words.iter().enumerate().skip(SPEC_NAME) {
                if let Some(array) = slots.get(list)
                    && let Some(name) = text(words[index - SPEC_NAME])
                {
                    owners.entry(*array).or_insert(name);
                }
            }
        }
        owners
    }
}

/// Where the list of slots that contains the one at `index` may begin: there, or at any slot before
/// it.
fn slots_around(words: &[u64], index: usize) -> impl Iterator<Item = usize> {
    let is_slot = |at: usize| (1..MOST_SLOTS).contains(&(words[at] & 0xffff_ffff));
    std::iter::successors(Some(index), move |&at| at.checked_sub(2).filter(|&it| is_slot(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: [(u64, &str); 6] = [
        (0x5000, "match"),
        (0x5008, "search"),
        (0x5010, "re.Pattern"),
        (0x5018, "zlib"),
        (0x5020, "no name"),
        (0x5028, "array"),
    ];

    fn text(address: u64) -> Option<String> {
        let found = TEXT.iter().find(|it| it.0 == address)?;
        (found.1 != "no name").then(|| found.1.to_owned())
    }

    fn names(words: Vec<u64>) -> HashMap<u64, String> {
        let data = Data {
            parts: vec![(0x8000, words)],
            code: std::iter::once(0x1000..0x2000).collect(),
            whole: 0x1000..0x9000,
        };
        data.methods(&text)
    }

    #[test]
    fn methods_of_a_module_have_its_name() {
        let definitions = [0x5000, 0x1100, 1, 0, 0x5008, 0x1200, 0x82, 0x5018, 0, 0, 0, 0];
        // PyModuleDef: name, documentation, size, methods.
        let module = [0x5018, 0, 0, 0x8000];
        let found = names([&definitions[..], &module].concat());
        assert_eq!(found[&0x1100], "zlib.match");
        assert_eq!(found[&0x1200], "zlib.search");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn methods_of_a_type_have_its_name() {
        let definitions = [0x5000, 0x1100, 1, 0, 0, 0, 0, 0];
        let mut kind = vec![0; 40];
        kind[3] = 0x5028;
        kind[29] = 0x8000;
        assert_eq!(names([&definitions[..], &kind].concat())[&0x1100], "array.match");
        // Slots: (Py_tp_dealloc, ...), (Py_tp_methods, ...); spec: name, sizes, flags, slots.
        let slots = [52, 0x1300, 64, 0x8000, 0, 0];
        let spec = [0x5010, 0, 0, 0x8000 + 8 * 8];
        let found = names([&definitions[..], &slots, &spec].concat());
        assert_eq!(found[&0x1100], "re.Pattern.match");
    }

    /// A type that is called by the text at `name`, with its methods at 0x8000 or later.
    fn type_of(name: u64, methods: u64, base: u64, [init, new]: [u64; 2]) -> Vec<u64> {
        let mut kind = vec![0; 51];
        (kind[3], kind[29], kind[32], kind[37], kind[39]) = (name, methods, base, init, new);
        kind
    }

    #[test]
    fn what_makes_the_objects_of_a_type_has_the_name_of_the_type() {
        let definitions = [0x5000, 0x1100, 1, 0, 0, 0, 0, 0];
        let kind = type_of(0x5028, 0x8000, 0, [0x1300, 0x1400]);
        let found = names([&definitions[..], &kind].concat());
        assert_eq!((&*found[&0x1300], &*found[&0x1400]), ("array", "array"));
        let mut kind = type_of(0x5028, 0x8000, 0, [0, 0]);
        kind[50] = 0x1500;
        assert_eq!(names([&definitions[..], &kind].concat())[&0x1500], "array");
        // Slots: (Py_tp_new, ...), (Py_tp_methods, ...), (Py_tp_init, ...).
        let slots = [65, 0x1300, 64, 0x8000, 60, 0x1400, 0, 0x1500];
        let spec = [0x5010, 0, 0, 0x8000 + 8 * 8];
        let found = names([&definitions[..], &slots, &spec].concat());
        assert_eq!((&*found[&0x1300], &*found[&0x1400]), ("re.Pattern", "re.Pattern"));
        assert!(!found.contains_key(&0x1500));
    }

    #[test]
    fn a_maker_of_several_types_has_the_name_of_the_one_that_the_others_inherit_from() {
        let definitions = [0x5000, 0x1100, 1, 0, 0, 0, 0, 0, 0x5008, 0x1200, 1, 0, 0, 0, 0, 0];
        let [first, second] = [0x8000, 0x8000 + 8 * 8];
        let base = 0x8000 + 8 * 16;
        let kinds = |its_base| {
            let of_array = type_of(0x5028, first, 0, [0, 0x1400]);
            let of_pattern = type_of(0x5010, second, its_base, [0, 0x1400]);
            names([&definitions[..], &of_array, &of_pattern].concat())
        };
        assert_eq!(kinds(base)[&0x1400], "array");
        assert!(!kinds(0).contains_key(&0x1400), "it is of either");
    }

    #[test]
    fn methods_without_an_owner_have_their_own_name_alone() {
        assert_eq!(names(vec![0x5000, 0x1100, 0x8, 0])[&0x1100], "match");
    }

    #[test]
    fn what_is_no_method_has_no_name() {
        for words in [
            [0x5020, 0x1100, 1, 0],
            [0x5000, 0x3000, 1, 0],
            [0x5000, 0x1100, 0, 0],
            [0x5000, 0x1100, 0x401, 0],
            [0x5000, 0x1100, 1, 7],
            [0x5010, 0x1100, 1, 0],
            [0, 0x1100, 1, 0],
        ] {
            assert!(names(words.to_vec()).is_empty(), "{words:x?}");
        }
    }
}
