//! Reading a draft: the whole trimmed text, strictly; nothing is guessed (SPEC 10).

use crate::machines::schema::Schema;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::draft::{BadDraft, Conclusion, Draft, DraftFault};
use crate::vocabulary::json::Json;
use crate::vocabulary::llm::FinishReason;
use crate::vocabulary::spec::DraftFormat;

/// Reads the text of a response as a draft.
pub(crate) fn read(
    format: DraftFormat,
    data_schema: Option<&Schema>,
    text: &str,
    finish: FinishReason,
) -> Result<Draft, BadDraft> {
    let bad = |kind| BadDraft { kind, digest: digest(text), bytes: text.len() as u64 };
    let trimmed = text.trim();
    if is_blank(trimmed) {
        return Err(bad(DraftFault::Empty));
    }
    if finish == FinishReason::Length {
        return Err(bad(DraftFault::Truncated));
    }
    match format {
        DraftFormat::Text => Ok(plain(trimmed)),
        DraftFormat::Json => parse(trimmed, data_schema).map_err(bad),
    }
}

/// The digest under which a draft's text is known.
pub(crate) fn digest(text: &str) -> Digest {
    Digest::of("portcullis.draft.1", &[text.as_bytes()])
}

/// Whether nobody could see it: white space, control characters and characters of no width.
fn is_blank(text: &str) -> bool {
    let invisible = |letter: char| {
        letter.is_whitespace()
            || letter.is_control()
            || matches!(letter, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}')
    };
    text.chars().all(invisible)
}

fn plain(text: &str) -> Draft {
    let conclusion = Some(Conclusion { statement: text.to_owned() });
    Draft { conclusion, citations: Vec::new(), quotes: std::collections::BTreeMap::new(), data: None }
}

fn parse(text: &str, data_schema: Option<&Schema>) -> Result<Draft, DraftFault> {
    let json = Json::parse(text)
        .or_else(|error| unfenced(text).map_or(Err(error), Json::parse))
        .map_err(|_| DraftFault::InvalidJson)?;
    let draft: Draft = serde_json::from_str(&json.to_text()).map_err(|_| DraftFault::Schema)?;
    let blank = |text: &String| is_blank(text);
    if draft.conclusion.as_ref().is_some_and(|conclusion| blank(&conclusion.statement))
        || draft.quotes.values().any(blank)
    {
        return Err(DraftFault::Schema);
    }
    match (data_schema, &draft.data) {
        (Some(schema), Some(data)) => schema.check(data).map_err(|_| DraftFault::Schema)?,
        (Some(_), None) if draft.conclusion.is_some() => return Err(DraftFault::Schema),
        (Some(_), None) | (None, _) => {}
    }
    Ok(draft)
}

/// The inside of one fence around the whole text: a first line of three backticks and at most a word, a last
/// line of three backticks.
fn unfenced(text: &str) -> Option<&str> {
    let (opening, rest) = text.strip_prefix("```")?.split_once('\n')?;
    let word = opening.trim();
    let (inside, closing) = rest.rsplit_once('\n')?;
    (closing.trim() == "```" && word.chars().all(|letter| letter.is_ascii_alphanumeric())).then_some(inside)
}
