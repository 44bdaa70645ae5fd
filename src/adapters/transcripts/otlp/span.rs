//! One span as recorded.

use std::borrow::Cow;

use super::super::error::TranscriptError;
use super::super::format::Format;
use super::super::node::{Fields, Form, Node};
use super::super::reading::ReadOptions;
use super::attributes::Attributes;

/// A span, its attributes still as they stand in the document.
#[derive(Debug)]
pub(super) struct Span<'a> {
    /// Its place in the file, from 0.
    pub(super) at: usize,
    pub(super) trace: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) parent: Cow<'a, str>,
    pub(super) name: String,
    /// Nanoseconds since 1970; 0 where it was not recorded.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The message of an error; `None` when the span is none.
    pub(super) error: Option<String>,
    pub(super) attributes: Attributes<'a>,
    pub(super) events: Vec<Event<'a>>,
}

/// What happened within a span.
#[derive(Debug)]
pub(super) struct Event<'a> {
    pub(super) name: String,
    pub(super) attributes: Attributes<'a>,
}

/// Adds the spans of one document or line.
pub(super) fn spans<'a>(
    root: &Node<'a, '_>,
    options: &ReadOptions,
    spans: &mut Vec<Span<'a>>,
) -> Result<(), TranscriptError> {
    let fields = root.fields()?;
    let resources = fields.any(&["resourceSpans", "resource_spans"]).ok_or(TranscriptError::Unrecognised)?;
    for (index, raw) in resources.items()?.into_iter().enumerate() {
        let resource = resources.index(index, raw);
        let fields = resource.fields()?;
        // The middle level had an older name.
        let Some(scopes) = fields.any(&["scopeSpans", "scope_spans", "instrumentationLibrarySpans"]) else { continue };
        for (index, raw) in scopes.items()?.into_iter().enumerate() {
            let scope = scopes.index(index, raw);
            let fields = scope.fields()?;
            let Some(list) = fields.get("spans") else { continue };
            let items = list.items()?;
            options.admit(Format::Otlp, spans.len().saturating_add(items.len()))?;
            for (index, raw) in items.into_iter().enumerate() {
                spans.push(span(&list.index(index, raw), spans.len())?);
            }
        }
    }
    Ok(())
}

fn span<'a>(node: &Node<'a, '_>, at: usize) -> Result<Span<'a>, TranscriptError> {
    let fields = node.fields()?;
    let id = |keys: &[&'static str]| fields.loose(keys).map(|id| Cow::Owned(id.unwrap_or_default()));
    let mut events = Vec::new();
    if let Some(list) = fields.of("events", Form::List) {
        for (index, raw) in list.items()?.into_iter().enumerate() {
            let event = list.index(index, raw);
            let fields = event.fields()?;
            let attributes = Attributes::read(fields.get("attributes"))?;
            events.push(Event { name: fields.text("name")?.unwrap_or_default(), attributes });
        }
    }
    Ok(Span {
        at,
        trace: id(&["traceId", "trace_id"])?,
        id: id(&["spanId", "span_id"])?,
        parent: id(&["parentSpanId", "parent_span_id"])?,
        name: fields.loose(&["name"])?.unwrap_or_default(),
        start: fields.number(&["startTimeUnixNano", "start_time_unix_nano"]).unwrap_or_default(),
        end: fields.number(&["endTimeUnixNano", "end_time_unix_nano"]).unwrap_or_default(),
        error: error(&fields)?,
        attributes: Attributes::read(fields.get("attributes"))?,
        events,
    })
}

/// The code is a number or one of two names.
fn error(fields: &Fields<'_, '_>) -> Result<Option<String>, TranscriptError> {
    let Some(status) = fields.of("status", Form::Object) else { return Ok(None) };
    let status = status.fields()?;
    let code = status.loose(&["code"])?.unwrap_or_default();
    let failed = matches!(code.to_ascii_uppercase().as_str(), "2" | "ERROR" | "STATUS_CODE_ERROR");
    let message = status.loose(&["message"])?.unwrap_or_default();
    Ok(failed.then_some(message))
}
