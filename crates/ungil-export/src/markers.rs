//! What markers of the Firefox Profiler look like: their fields, and where they are shown.

use fxprof_processed_profile::{
    CategoryHandle, Marker, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations, MarkerTypeHandle,
    Profile, RuntimeSchemaMarkerField, RuntimeSchemaMarkerSchema, StringHandle,
};

/// A marker with the values of its fields, texts and numbers each in their order.
pub struct Filled {
    /// Which schema it has.
    pub kind: MarkerTypeHandle,
    /// Its name: the row that it is in.
    pub name: StringHandle,
    /// Its category.
    pub category: CategoryHandle,
    /// The values of fields that are texts; they come first in each schema.
    pub texts: Vec<StringHandle>,
    /// The values of the others.
    pub numbers: Vec<f64>,
}

impl Marker for Filled {
    fn marker_type(&self, _profile: &mut Profile) -> MarkerTypeHandle {
        self.kind
    }

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        self.category
    }

    /// The text of each schema is its first field.
    fn string_field_value(&self, field: u32) -> StringHandle {
        self.texts[field as usize]
    }

    fn number_field_value(&self, field: u32) -> f64 {
        self.numbers[field as usize - self.texts.len()]
    }
}

fn field(key: &str, label: &str, format: MarkerFieldFormat) -> RuntimeSchemaMarkerField {
    let flags = MarkerFieldFlags::SEARCHABLE;
    RuntimeSchemaMarkerField { key: key.to_owned(), label: label.to_owned(), format, flags }
}

fn schema(
    name: &str,
    description: &str,
    label: &str,
    fields: Vec<RuntimeSchemaMarkerField>,
) -> RuntimeSchemaMarkerSchema {
    RuntimeSchemaMarkerSchema {
        type_name: name.to_owned(),
        description: Some(description.to_owned()),
        locations: MarkerLocations::MARKER_CHART
            | MarkerLocations::MARKER_TABLE
            | MarkerLocations::TIMELINE_OVERVIEW,
        chart_label: Some(label.to_owned()),
        tooltip_label: Some(format!("{{marker.name}}: {label}")),
        table_label: Some(label.to_owned()),
        fields,
        graphs: Vec::new(),
    }
}

/// A hold.
pub fn hold_schema() -> RuntimeSchemaMarkerSchema {
    use MarkerFieldFormat::{Duration, Integer, String};
    let fields = vec![
        field("release", "Release", String),
        field("waited", "Waits of others, summed", Duration),
        field("waiters", "Most waiters at a time", Integer),
        field("unanswered", "Drop request unanswered", Duration),
        field("cpu", "Ran", Duration),
    ];
    let what = "The thread held the GIL.";
    schema("GilHold", what, "others waited {marker.data.waited}", fields)
}

/// A wait.
pub fn wait_schema() -> RuntimeSchemaMarkerSchema {
    use MarkerFieldFormat::{Integer, String};
    let fields = vec![
        field("culprit", "Longest holder meanwhile", String),
        field("requests", "Drop requests", Integer),
    ];
    let what = "The thread waited for the GIL.";
    schema("GilWait", what, "for {marker.data.culprit}", fields)
}

/// A sentence about the export.
pub fn note_schema() -> RuntimeSchemaMarkerSchema {
    let fields = vec![field("text", "What", MarkerFieldFormat::String)];
    schema("GilNote", "What this export leaves out.", "{marker.data.text}", fields)
}
