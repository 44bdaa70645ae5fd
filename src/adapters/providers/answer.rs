//! The form of an answer (SPEC 10), told to the model in words, and to its provider as a schema.

use super::body::object;
use crate::vocabulary::json::Json;
use crate::vocabulary::spec::{DraftFormat, DraftSpec};

/// How an answer has to look.
const JSON_FORM: &str = r#"An answer is one JSON object and nothing else, with no text before or after it:
{"conclusion": {"statement": "..."}, "citations": ["f1"], "quotes": {"f1": "..."}}
- "conclusion": what you conclude, in one statement. It is null when the observed facts carry no conclusion.
- "citations": the ids of the observed facts that the conclusion rests on. A fact that is shown as [f1] is cited as "f1". At least one is needed with a conclusion. Never cite an id that was not shown to you.
- "quotes": may be left out. For cited facts, by id: words copied from the fact exactly."#;

const ANY_DATA: &str = r#"
- "data": may be left out. Any JSON, which has to rest on the cited facts too."#;

/// What a model is told about its answer.
pub(super) fn told(draft: &DraftSpec) -> String {
    match (draft.format, &draft.data_schema) {
        (DraftFormat::Text, _) => "Answer in plain text.".to_owned(),
        (DraftFormat::Json, None) => format!("{JSON_FORM}{ANY_DATA}"),
        (DraftFormat::Json, Some(schema)) => format!(
            "{JSON_FORM}\n- \"data\": needed with a conclusion. It has to rest on the cited facts too, and to keep this JSON Schema: {}",
            schema.to_text()
        ),
    }
}

/// The schema that an answer keeps; none for plain text. Quotes have free keys, which strict schemas of
/// providers cannot say, so a held answer has none.
pub(super) fn schema(draft: &DraftSpec) -> Option<Json> {
    match draft.format {
        DraftFormat::Text => None,
        DraftFormat::Json => Some(json_schema(draft.data_schema.as_ref())),
    }
}

fn json_schema(data: Option<&Json>) -> Json {
    let strings = object([("type", "array".into()), ("items", object([("type", "string".into())]))]);
    let statement = closed(vec![("statement", object([("type", "string".into())]))]);
    let conclusion = object([("anyOf", vec![statement, object([("type", "null".into())])].into())]);
    let mut properties = vec![("citations", strings), ("conclusion", conclusion)];
    if let Some(data) = data {
        properties.push(("data", data.clone()));
    }
    closed(properties)
}

/// An object with these properties, all of them and no other.
pub(super) fn closed(properties: Vec<(&str, Json)>) -> Json {
    let required: Vec<Json> = properties.iter().map(|(name, _)| Json::from(*name)).collect();
    let properties = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    object([
        ("type", "object".into()),
        ("properties", Json::Object(properties)),
        ("required", required.into()),
        ("additionalProperties", false.into()),
    ])
}
