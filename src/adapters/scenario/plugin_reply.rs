//! What a plugin answers when one of its hooks is asked, or when it performs an action.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};

use crate::vocabulary::input::StagedCommand;

/// How long a plugin takes, in milliseconds.
const PLUGIN_MS: u64 = 10;

/// One answer of a plugin: `"nothing"`, `"fail"` or `{"commands": [..], "context": ".."}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginReply {
    /// What it says.
    pub says: PluginSays,
    /// How long it takes, in virtual milliseconds.
    pub after_ms: u64,
}

/// What a plugin says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginSays {
    /// What it stages, and what it adds to the next model request. Both may be empty.
    Answer {
        /// The commands, in order.
        commands: Vec<StagedCommand>,
        /// Text for the next model request only.
        context: Option<String>,
    },
    /// Nothing: it failed.
    Failure,
}

/// The answers of one hook or of one action kind, in the order in which they are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Vec<Written>")]
pub struct PluginReplies {
    /// The answers that are given once.
    pub once: Vec<PluginReply>,
    /// The answer to every question after those; `None` when the script has none.
    pub always: Option<PluginReply>,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for PluginReplies {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PluginReplies".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Vec::<Written>::json_schema(generator);
        let description = "The answers of one hook or of one action kind, in the order in which they are asked for.";
        schema.insert("description".to_owned(), description.into());
        schema
    }
}

impl TryFrom<Vec<Written>> for PluginReplies {
    type Error = &'static str;

    fn try_from(written: Vec<Written>) -> Result<Self, Self::Error> {
        let mut replies = Self::default();
        for Written { reply, always } in written {
            if replies.always.is_some() {
                return Err("an answer that stands `always` is the last of its list");
            }
            if always {
                replies.always = Some(reply);
            } else {
                replies.once.push(reply);
            }
        }
        Ok(replies)
    }
}

/// An answer as it stands in a list.
#[derive(Debug)]
struct Written {
    reply: PluginReply,
    always: bool,
}

/// An answer that is one word.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum PluginWord {
    /// It stages nothing and adds nothing.
    Nothing,
    /// It fails.
    Fail,
}

/// An answer with something in it; an empty one is `"nothing"`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "PluginAnswer")]
struct AnswerFields {
    /// What it stages, in order. Default: nothing.
    #[serde(default)]
    commands: Vec<StagedCommand>,
    /// Text for the next model request, and for no other. Default: none.
    context: Option<String>,
    /// How long it takes, in virtual milliseconds. Default: 10.
    after_ms: Option<u64>,
    /// Whether every later question is answered like this too. Only the last answer of a list may say so.
    /// Default: it is given once.
    #[serde(default)]
    always: bool,
}

impl From<PluginWord> for Written {
    fn from(word: PluginWord) -> Self {
        let says = match word {
            PluginWord::Nothing => PluginSays::Answer { commands: Vec::new(), context: None },
            PluginWord::Fail => PluginSays::Failure,
        };
        Self { reply: PluginReply { says, after_ms: PLUGIN_MS }, always: false }
    }
}

impl From<AnswerFields> for Written {
    fn from(fields: AnswerFields) -> Self {
        let AnswerFields { commands, context, after_ms, always } = fields;
        let says = PluginSays::Answer { commands, context };
        Self { reply: PluginReply { says, after_ms: after_ms.unwrap_or(PLUGIN_MS) }, always }
    }
}

/// A word or an object. A derived reader would buffer the object: its payloads could not be exact, and what is
/// wrong in it would not be named.
impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Written;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("`\"nothing\"`, `\"fail\"` or an object with `commands` or `context`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Written, E> {
                PluginWord::deserialize(de::value::StrDeserializer::new(word)).map(Written::from)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
                AnswerFields::deserialize(MapAccessDeserializer::new(map)).map(Written::from)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Written {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PluginReply".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let either = [generator.subschema_for::<PluginWord>(), generator.subschema_for::<AnswerFields>()];
        schemars::json_schema!({
            "description": "One answer of a plugin.",
            "anyOf": either,
        })
    }
}
