//! What is written is read again, found by its keys and in their order; what is damaged is refused or
//! read wrongly, and nothing worse.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use proptest::collection::vec;
use proptest::prelude::*;
use ungil_frozen::frozen::{Node, Table};
use ungil_frozen::header::{self, Header};
use ungil_frozen::table::Sorted;
use ungil_frozen::{Error, Frozen, Writer, cell, file, order};
use ungil_heap::value::{Cell, Value, encode};

/// A structure, as a test knows it.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(Value<'static>),
    List(Vec<Tree>),
    Tuple(Vec<Tree>),
    Set(Vec<Value<'static>>),
    Dict(Vec<(Value<'static>, Tree)>),
}

const KEY: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

fn write(writer: &mut Writer, tree: &Tree) -> Cell {
    let all = |writer: &mut Writer, items: &[Tree]| -> Vec<Cell> {
        items.iter().map(|item| write(writer, item)).collect()
    };
    match tree {
        Tree::Leaf(value) => writer.value(value).unwrap(),
        Tree::List(items) => {
            let cells = all(writer, items);
            writer.sequence(cell::LIST, &cells).unwrap()
        }
        Tree::Tuple(items) => {
            let cells = all(writer, items);
            writer.sequence(cell::TUPLE, &cells).unwrap()
        }
        Tree::Set(members) => {
            let mut draft = writer.draft(members.len(), false);
            for member in members {
                writer.key(&mut draft, member).unwrap();
            }
            writer.set(cell::SET, &draft).unwrap()
        }
        Tree::Dict(pairs) => {
            let mut draft = writer.draft(pairs.len(), true);
            for (key, value) in pairs {
                writer.key(&mut draft, key).unwrap();
                let value = write(writer, value);
                draft.value(value);
            }
            writer.dict(&draft).unwrap()
        }
    }
}

fn file_of(tree: &Tree) -> File {
    let file = file::anonymous().unwrap();
    let copy = file.try_clone().unwrap();
    let mut writer = Writer::new(file, KEY, 7).unwrap();
    let root = write(&mut writer, tree);
    writer.finish(root).unwrap();
    copy
}

fn frozen(tree: &Tree) -> Frozen {
    Frozen::open(&file_of(tree)).unwrap()
}

/// Whether two values are the same, also of their type, and if they are NaN.
fn same(one: &Value, other: &Value) -> bool {
    encode(one).unwrap() == encode(other).unwrap()
}

/// Compares what a cell is with what was written.
fn check(frozen: &Frozen, found: Cell, below: usize, tree: &Tree) {
    let items = |at: usize, len: usize, trees: &[Tree]| {
        assert_eq!(len, trees.len());
        for (number, tree) in trees.iter().enumerate() {
            check(frozen, frozen.cell(at + number * Cell::SIZE).unwrap(), at, tree);
        }
    };
    match (frozen.node(found, below).unwrap(), tree) {
        (Node::Value(value), Tree::Leaf(leaf)) => assert!(same(&value, leaf)),
        (Node::List(list), Tree::List(trees)) => items(list.at, list.len, trees),
        (Node::Tuple(tuple), Tree::Tuple(trees)) => items(tuple.at, tuple.len, trees),
        (Node::Set(table), Tree::Set(members)) => check_keys(frozen, &table, members),
        (Node::Dict(table), Tree::Dict(pairs)) => {
            let keys: Vec<_> = pairs.iter().map(|(key, _)| key.clone()).collect();
            check_keys(frozen, &table, &keys);
            for (number, (_, tree)) in pairs.iter().enumerate() {
                check(frozen, frozen.value_of(&table, number).unwrap(), table.at, tree);
            }
        }
        (Node::Record(record), Tree::Dict(pairs)) => {
            assert_eq!(record.len, pairs.len());
            for (number, (key, tree)) in pairs.iter().enumerate() {
                assert_eq!(frozen.find_field(&record, key), Some(number));
                if let Some(short) = Cell::inline(key) {
                    assert_eq!(frozen.find_field_cell(&record, short), Some(number));
                }
                check(
                    frozen,
                    frozen.cell(record.at + number * Cell::SIZE).unwrap(),
                    record.at,
                    tree,
                );
            }
            assert_eq!(frozen.find_field(&record, &Value::from("no such key at all")), None);
        }
        (node, tree) => panic!("{node:?} is not {tree:?}"),
    }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(number) if number.is_nan())
}

fn check_keys(frozen: &Frozen, table: &Table, keys: &[Value<'static>]) {
    assert_eq!(table.len, keys.len());
    for (number, key) in keys.iter().enumerate() {
        let found = frozen.key_of(table, number).unwrap();
        assert!(same(&frozen.value(found, table.at).unwrap(), key));
        let expected = (!is_nan(key)).then_some(number);
        assert_eq!(frozen.find(table, key).unwrap(), expected, "{key:?}");
        if let Some(short) = Cell::inline(key) {
            assert_eq!(frozen.find_cell(table, short).unwrap(), expected);
        }
    }
    assert_eq!(frozen.find(table, &Value::from("no such key at all")).unwrap(), None);
    assert_eq!(frozen.find_cell(table, Cell::from(-987_654_321)).unwrap(), None);
    check_order(frozen, table, keys);
}

fn check_order(frozen: &Frozen, table: &Table, keys: &[Value<'static>]) {
    let sorts: Vec<_> = keys.iter().map(order::sort).collect();
    let is_alike = sorts.windows(2).all(|two| two[0] == two[1]) && !sorts.contains(&None);
    assert_eq!(table.sorted == Sorted::Not, !is_alike);
    if !is_alike || table.sorted == Sorted::Few {
        return;
    }
    let mut sorted: Vec<&Value> = keys.iter().collect();
    sorted.sort_by(|one, other| order::compare(one, other).unwrap());
    for (rank, key) in sorted.iter().enumerate() {
        let number = frozen.ranked(table, rank).unwrap();
        assert!(same(&keys[number], key));
        assert_eq!(frozen.rank(table, key, false).unwrap(), Some(rank));
        assert_eq!(frozen.rank(table, key, true).unwrap(), Some(rank + 1));
    }
}

fn text() -> impl Strategy<Value = Value<'static>> {
    "[a-z\u{e9}\u{20ac}]{0,24}".prop_map(|text| Value::Str(text.into_bytes().into()))
}

fn number() -> impl Strategy<Value = Value<'static>> {
    let large = (any::<bool>(), vec(any::<u8>(), 9..20)).prop_map(|(negative, mut magnitude)| {
        magnitude.push(1);
        Value::BigInt { negative, magnitude: magnitude.into() }
    });
    prop_oneof![
        (-3_i64..40).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Float),
        (-9_i32..9).prop_map(|half| Value::Float(f64::from(half) / 2.0)),
        (60_i32..70).prop_map(|power| Value::Float(2_f64.powi(power))),
        any::<bool>().prop_map(Value::Bool),
        large,
    ]
}

fn leaf() -> impl Strategy<Value = Value<'static>> {
    let plain = prop_oneof![
        text(),
        number(),
        Just(Value::None),
        vec(any::<u8>(), 0..30).prop_map(|bytes| Value::Bytes(bytes.into())),
        (any::<f64>(), any::<f64>()).prop_map(|(real, other)| Value::Complex(real, other)),
    ];
    let tuple = vec(prop_oneof![text(), number()], 0..3).prop_map(Value::Tuple);
    prop_oneof![8 => plain, 1 => tuple]
}

fn unique(keys: Vec<Value<'static>>) -> Vec<Value<'static>> {
    let mut kept: Vec<Value<'static>> = Vec::new();
    for key in keys {
        if !kept.contains(&key) {
            kept.push(key);
        }
    }
    kept
}

fn keys(most: usize) -> impl Strategy<Value = Vec<Value<'static>>> {
    prop_oneof![
        vec(text(), 0..most).prop_map(unique),
        vec(number(), 0..most).prop_map(unique),
        vec(leaf(), 0..most).prop_map(unique),
        // Keys that recur, for which there are schemas.
        (1..4_usize).prop_map(|count| {
            ["id", "name", "a name that needs a block"][..count]
                .iter()
                .map(|name| Value::from(*name))
                .collect()
        }),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    leaf().prop_map(Tree::Leaf).prop_recursive(4, 200, 12, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Tree::List),
            vec(inner.clone(), 0..6).prop_map(Tree::Tuple),
            keys(100).prop_map(Tree::Set),
            (keys(12), vec(inner, 12))
                .prop_map(|(keys, values)| { Tree::Dict(keys.into_iter().zip(values).collect()) }),
        ]
    })
}

fn table(keys: Vec<Value<'static>>) -> Tree {
    let number = |(number, key)| (key, Tree::Leaf(Value::Int(number)));
    Tree::Dict((0..).zip(keys).map(number).collect())
}

/// Uses everything that can be reached, which may be nonsense.
fn use_all(frozen: &Frozen) {
    let _ = frozen.verify();
    let _ = frozen.walk(20_000);
    let Ok(root) = frozen.root() else { return };
    let wanted = [Value::from("id"), Value::Int(3), Value::from("a name that needs a block")];
    match root {
        Node::Dict(table) | Node::Set(table) | Node::FrozenSet(table) => {
            for key in &wanted {
                let _ = frozen.find(&table, key);
                let _ = frozen.rank(&table, key, true);
            }
            let _ = frozen.find_cell(&table, Cell::from(3));
            for rank in 0..table.len.min(50) {
                let _ = frozen.ranked(&table, rank);
            }
        }
        Node::Record(record) => {
            for key in &wanted {
                let _ = frozen.find_field(&record, key);
            }
        }
        _ => {}
    }
}

fn damaged(file: &File, at: u64, bytes: &[u8]) -> File {
    let mut file = file.try_clone().unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(tree in tree()) {
        let frozen = frozen(&tree);
        check(&frozen, frozen.header().root, frozen.end(), &tree);
        frozen.verify().unwrap();
        frozen.walk(1 << 20).unwrap();
    }

    #[test]
    fn keys_of_a_large_dict_are_found_and_in_order(keys in keys(160)) {
        let tree = table(keys);
        let frozen = frozen(&tree);
        check(&frozen, frozen.header().root, frozen.end(), &tree);
    }

    #[test]
    fn numbers_compare_as_python_compares_them(one in number(), other in number()) {
        let found = order::compare(&one, &other);
        let equal = one == other;
        prop_assert_eq!(found == Some(Ordering::Equal), equal);
        prop_assert_eq!(order::compare(&other, &one), found.map(Ordering::reverse));
        if let (Value::Int(one), Value::Int(other)) = (&one, &other) {
            prop_assert_eq!(found, Some(one.cmp(other)));
        }
        prop_assert_eq!(found.is_none(), is_nan(&one) || is_nan(&other));
    }

    #[test]
    fn damage_behind_the_header_is_never_more_than_an_error(
        tree in tree(),
        changes in vec((any::<prop::sample::Index>(), vec(any::<u8>(), 1..9)), 1..8),
        root in (any::<prop::sample::Index>(), 0_u64..64, any::<u16>()),
    ) {
        let mut file = file_of(&tree);
        let (length, header) = {
            let frozen = Frozen::open(&file).unwrap();
            (frozen.end(), *frozen.header())
        };
        for (place, bytes) in changes {
            if length > header::SIZE {
                let at = header::SIZE + place.index(length - header::SIZE);
                let kept = bytes.len().min(length - at);
                file = damaged(&file, at as u64, &bytes[..kept]);
            }
        }
        use_all(&Frozen::open(&file).unwrap());
        // As if somebody had written that header.
        let at = root.0.index(length) as u64;
        let root = cell::to(u8::try_from(root.1 % 24).unwrap(), u64::from(root.2), at);
        let file = damaged(&file, 0, &Header { root, ..header }.bytes());
        use_all(&Frozen::open(&file).unwrap());
    }

    #[test]
    fn a_bit_that_flips_is_noticed(tree in tree(), at in any::<prop::sample::Index>(), bit in 0..8) {
        let file = file_of(&tree);
        let bytes = Frozen::open(&file).unwrap().bytes().to_vec();
        let at = at.index(bytes.len());
        let file = damaged(&file, at as u64, &[bytes[at] ^ 1_u8 << bit]);
        let noticed = Frozen::open(&file).and_then(|frozen| frozen.verify()).is_err();
        // Of what no meaning is given to, the header has its own checksum.
        prop_assert!(noticed);
    }
}

#[test]
fn a_file_that_is_something_else_is_refused_in_words() {
    let refused = |bytes: &[u8]| {
        let file = damaged(&file::anonymous().unwrap(), 0, bytes);
        Frozen::open(&file).err().unwrap()
    };
    assert!(matches!(refused(b""), Error::Foreign));
    assert!(matches!(refused(b"#!/usr/bin/env python"), Error::Foreign));
    let whole = frozen(&Tree::List(vec![])).bytes().to_vec();
    assert!(matches!(refused(&whole[..20]), Error::Length { found: 20, .. }));
    assert!(matches!(refused(&[&whole[..], b"more"].concat()), Error::Length { .. }));
    let mut newer = whole.clone();
    newer[8] = 9;
    assert!(matches!(refused(&newer), Error::Version { found: 9, known: 1 }));
    let mut wrong = whole.clone();
    wrong[30] ^= 1;
    assert!(matches!(refused(&wrong), Error::Damaged(_)));
}

#[test]
fn dicts_with_the_same_keys_have_one_schema_from_the_second_on() {
    let row = |number: i64| {
        let leaf = |number| Tree::Leaf(Value::Int(number));
        Tree::Dict(vec![
            (Value::from("id"), leaf(number)),
            (Value::from("a name that needs a block"), leaf(-number)),
        ])
    };
    let of = |count| frozen(&Tree::List((0..count).map(row).collect()));
    assert_eq!(of(1).schemas().len(), 0);
    assert_eq!(of(1_000).schemas().len(), 1);
    // A cell in the list, and one for each value.
    let growth = of(2_000).bytes().len() - of(1_000).bytes().len();
    assert_eq!(growth, 1_000 * 48);
}

#[test]
fn a_text_that_recurs_is_written_once() {
    let list = |count| Tree::List(vec![Tree::Leaf(Value::from("a text of some length")); count]);
    let growth = frozen(&list(200)).bytes().len() - frozen(&list(100)).bytes().len();
    assert_eq!(growth, 100 * Cell::SIZE);
}

#[test]
fn the_format_is_the_one_that_is_described() {
    let row = |name: &'static str, number| {
        Tree::Dict(vec![
            (Value::from("name"), Tree::Leaf(Value::from(name))),
            (Value::from("number"), Tree::Leaf(Value::Int(number))),
        ])
    };
    let frozen = frozen(&Tree::Dict(vec![
        (Value::Int(1), Tree::List(vec![row("short", 1), row("longer than a cell is", 2)])),
        (Value::from("é"), Tree::Tuple(vec![Tree::Leaf(Value::None), Tree::Set(vec![])])),
    ]));
    // Whoever changes what is written changes the version, and then this.
    assert_eq!((header::VERSION, crc32fast::hash(frozen.bytes())), (1, 625_493_857));
}

#[test]
fn a_file_takes_its_place_when_it_is_whole_and_leaves_nothing_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    std::fs::write(&path, "what was there").unwrap();
    drop(file::Replacing::new(&path).unwrap());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), b"what was there");
    let replacing = file::Replacing::new(&path).unwrap();
    replacing.file().unwrap().write_all(b"new").unwrap();
    replacing.finish().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn nothing_can_be_written_to_what_is_sealed() {
    let file = file_of(&Tree::List(vec![]));
    file::seal(&file).unwrap();
    assert!(file.try_clone().unwrap().write_all(b"x").is_err());
    assert!(file.set_len(0).is_err());
    Frozen::open(&file).unwrap().verify().unwrap();
}
