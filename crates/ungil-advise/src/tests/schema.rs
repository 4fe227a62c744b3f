//! The documented JSON against what is written.

use super::story::{MS, Story};
use crate::{Cause, Kind};
use serde_json::Value;
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../docs/advise.md");

fn collect(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(items) => {
            for (key, item) in items {
                keys.insert(key.clone());
                collect(item, keys);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, keys)),
        _ => {}
    }
}

#[test]
fn every_key_kind_and_cause_is_documented() {
    let told = Story::convoy().end(2_000 * MS);
    let mut words = BTreeSet::new();
    collect(&serde_json::to_value(&told.advised).unwrap(), &mut words);
    assert!(words.contains("saved_s_per_s") && words.contains("pointer"));
    let name = |value: Value| value.as_str().unwrap().to_owned();
    words.extend(Kind::ALL.map(|it| name(serde_json::to_value(it).unwrap())));
    words.extend(Cause::ALL.map(|it| name(serde_json::to_value(it).unwrap())));
    let missing: Vec<_> =
        words.iter().filter(|word| !DOCUMENT.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "not in docs/advise.md: {missing:?}");
}

#[test]
fn each_pointer_leads_to_the_number_that_it_is_told_with() {
    let told = Story::convoy().end(2_000 * MS);
    let report = serde_json::to_value(&told.report).unwrap();
    let mut pointers = 0;
    for advice in told.advised.advice.iter().chain(&told.advised.rejected) {
        for evidence in &advice.evidence {
            let Some(pointer) = &evidence.pointer else { continue };
            let value = report.pointer(pointer).and_then(Value::as_f64);
            assert_eq!(value, Some(evidence.value), "{pointer}");
            pointers += 1;
        }
    }
    assert!(pointers > 5);
}
