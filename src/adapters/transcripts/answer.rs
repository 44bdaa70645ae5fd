//! The draft in a terminal tool's arguments.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    return_type: Option<&'a RawValue>,
    #[serde(borrow)]
    final_answer: Option<&'a RawValue>,
    #[serde(borrow)]
    answer: Option<&'a RawValue>,
}

/// The text that a terminal call hands over as the answer, never `Some("")`.
///
/// - No arguments, `{}`, or a `return_type` of `give_up_and_restart` (ToolBench): no answer.
/// - `final_answer`, else `answer`, when it is a string: that string.
/// - Anything else: the arguments as they stand, since the answer in them is not recognisable.
pub(super) fn answer_text(arguments: &str) -> Option<String> {
    if says_nothing(arguments) {
        return None;
    }
    let fields = fields(arguments);
    if fields.as_ref().is_some_and(Answer::gives_up) {
        return None;
    }
    let text = fields.and_then(|fields| fields.text()).unwrap_or_else(|| arguments.to_owned());
    Some(text).filter(|text| !text.is_empty())
}

fn says_nothing(arguments: &str) -> bool {
    let trimmed = arguments.trim();
    let inside = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inside.unwrap_or(trimmed).trim().is_empty()
}

/// Only an object has fields; a list would otherwise be read as one by position.
fn fields(arguments: &str) -> Option<Answer<'_>> {
    arguments.trim_start().starts_with('{').then(|| serde_json::from_str(arguments).ok()).flatten()
}

impl Answer<'_> {
    fn gives_up(&self) -> bool {
        self.return_type.is_some_and(|kind| kind.get() == r#""give_up_and_restart""#)
    }

    fn text(&self) -> Option<String> {
        self.final_answer.or(self.answer).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::answer_text;

    #[test]
    fn an_answer_is_its_field_or_nothing_or_the_arguments_as_they_stand() {
        let cases = [
            (r#"{"return_type":"give_answer","final_answer":"It is \"5\"."}"#, Some(r#"It is "5"."#)),
            (r#"{"answer":"short"}"#, Some("short")),
            (r#"{"final_answer":"long","answer":"short"}"#, Some("long")),
            (r#"{"final_answer":""}"#, None),
            (r#"{"return_type":"give_up_and_restart"}"#, None),
            (r#"{"return_type":"give_up_and_restart","final_answer":"x"}"#, None),
            ("", None),
            (" {\n} ", None),
            (r#"{"return_type":"give_answer"}"#, Some(r#"{"return_type":"give_answer"}"#)),
            (r#"{"final_answer":7}"#, Some(r#"{"final_answer":7}"#)),
            (r#"["give_answer","x"]"#, Some(r#"["give_answer","x"]"#)),
            (r#"{"final_answer":"cut"#, Some(r#"{"final_answer":"cut"#)),
            ("plain words", Some("plain words")),
        ];
        for (arguments, expected) in cases {
            assert_eq!(answer_text(arguments).as_deref(), expected, "{arguments}");
        }
    }
}
