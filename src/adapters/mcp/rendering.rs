//! Arguments on their way out, results on their way in.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};

use super::text::remark;
use crate::vocabulary::json::Json;
use crate::vocabulary::spec::Projection;
use crate::vocabulary::tool::ToolOutput;

/// Arguments as the client takes them. The error says why they cannot be carried unchanged.
pub(super) fn carried(arguments: &Json) -> Result<JsonObject, String> {
    let object: JsonObject = serde_json::from_str(&arguments.to_text())
        .map_err(|error| format!("the arguments are no JSON object that can be carried: {error}"))?;
    let back = serde_json::to_string(&object).ok().and_then(|text| Json::parse(&text).ok());
    match back {
        Some(back) if back.canonical() == arguments.canonical() => Ok(object),
        Some(_) | None => Err("the arguments hold a number that cannot be carried exactly".to_owned()),
    }
}

/// A result as content. Text blocks and the text of embedded resources are joined by line ends; what is no text
/// becomes a remark in brackets, never its bytes. Structured content takes their place where there is no text,
/// and where facts are found by pointers, which need JSON.
pub(super) fn rendered(result: &CallToolResult, projection: &Projection) -> ToolOutput {
    let structured = result.structured_content.as_ref().map(ToString::to_string);
    let content = match structured {
        Some(json) if points(projection) || !result.content.iter().any(has_text) => json,
        Some(_) | None => result.content.iter().map(block).collect::<Vec<_>>().join("\n"),
    };
    if result.is_error == Some(true) { ToolOutput::error(content) } else { ToolOutput::text(content) }
}

const fn points(projection: &Projection) -> bool {
    match projection {
        Projection::Pointers { .. } => true,
        Projection::Reported | Projection::Text | Projection::Lines => false,
    }
}

fn has_text(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(_) => true,
        ContentBlock::Resource(embedded) => {
            matches!(embedded.resource, ResourceContents::TextResourceContents { .. })
        }
        ContentBlock::Image(_) | ContentBlock::Audio(_) | ContentBlock::ResourceLink(_) => false,
        // The list of another crate.
        _ => false,
    }
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => bracketed("image", Some(&image.mime_type), Some(decoded_bytes(&image.data))),
        ContentBlock::Audio(audio) => bracketed("audio", Some(&audio.mime_type), Some(decoded_bytes(&audio.data))),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                bracketed(&format!("resource {}", remark(uri)), mime_type.as_deref(), Some(decoded_bytes(blob)))
            }
            // The list of another crate.
            _ => bracketed("resource", None, None),
        },
        ContentBlock::ResourceLink(link) => {
            bracketed(&format!("link {}", remark(&link.uri)), link.mime_type.as_deref(), link.size)
        }
        // The list of another crate.
        _ => bracketed("something that is no text", None, None),
    }
}

fn bracketed(what: &str, mime_type: Option<&str>, bytes: Option<u64>) -> String {
    let mime_type = mime_type.map(|mime_type| format!(" {}", remark(mime_type))).unwrap_or_default();
    let bytes = bytes.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
    format!("[{what}{mime_type}{bytes}]")
}

/// What base64 text decodes to.
fn decoded_bytes(base64: &str) -> u64 {
    let letters = base64.bytes().filter(|byte| !matches!(byte, b'=' | b'\r' | b'\n')).count() as u64;
    letters * 3 / 4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::TextContent;

    use super::*;
    use crate::vocabulary::json::{Double, Integer, Pointer};

    fn json() -> impl Strategy<Value = Json> {
        let integer = prop_oneof![any::<i64>().prop_map(Integer::from), any::<u64>().prop_map(Integer::from)];
        let double = any::<f64>().prop_filter_map("finite", |double| Double::try_from(double).ok());
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::Bool),
            integer.prop_map(Json::Integer),
            double.prop_map(Json::Double),
            ".*".prop_map(Json::String),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
                prop::collection::btree_map(".*", inner, 0..4).prop_map(Json::Object),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Json> {
        prop::collection::btree_map(".*", json(), 0..5).prop_map(Json::Object)
    }

    proptest! {
        #[test]
        fn arguments_are_carried_exactly(arguments in object()) {
            let carried = carried(&arguments).unwrap();
            let back = Json::parse(&serde_json::to_string(&carried).unwrap()).unwrap();
            prop_assert_eq!(back.canonical(), arguments.canonical());
        }

        #[test]
        fn what_is_no_object_is_not_carried(arguments in json()) {
            prop_assert_eq!(carried(&arguments).is_ok(), arguments.as_object().is_some());
        }

        #[test]
        fn structured_content_that_pointers_read_is_exact(structured in json()) {
            let result = result(vec![text("words")], Some(&structured), None);
            let pointers = Projection::Pointers { pointers: vec![Pointer::parse("").unwrap()], fact_key: None };
            let content = rendered(&result, &pointers);
            prop_assert_eq!(Json::parse(content.content()).unwrap().canonical(), structured.canonical());
        }

        #[test]
        fn text_is_kept_as_it_is(texts in prop::collection::vec(".*", 1..4), failed in any::<Option<bool>>()) {
            let result = result(texts.iter().map(|one| text(one)).collect(), Some(&Json::Null), failed);
            let output = rendered(&result, &Projection::Text);
            prop_assert_eq!(output.content(), texts.join("\n"));
            prop_assert_eq!(matches!(output, ToolOutput::Error { .. }), failed == Some(true));
        }

        #[test]
        fn no_bytes_of_a_block_without_text_are_shown(data in "[A-Za-z0-9+/]{8,400}") {
            let image = serde_json::from_value(serde_json::json!({"type":"image","data":data,"mimeType":"a/b"})).unwrap();
            let output = rendered(&result(vec![image], None, None), &Projection::Text);
            prop_assert_eq!(output.content(), format!("[image a/b, {} bytes]", data.len() * 3 / 4));
        }
    }

    fn text(text: &str) -> ContentBlock {
        ContentBlock::Text(TextContent::new(text))
    }

    fn result(content: Vec<ContentBlock>, structured: Option<&Json>, failed: Option<bool>) -> CallToolResult {
        let mut result = CallToolResult::default();
        result.content = content;
        result.structured_content = structured.map(|json| serde_json::from_str(&json.to_text()).unwrap());
        result.is_error = failed;
        result
    }
}
