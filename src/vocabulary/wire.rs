//! How our enums look on the wire.
//!
//! Every enum that carries data is a JSON object with a `type`, which is written first. A reader then streams
//! the rest straight into the variant's fields: unknown fields and duplicate keys are refused for every variant
//! (those without fields too), and payloads keep their exact numbers (SPEC 4). A tag that comes later, as from
//! a writer that sorts its keys, costs a detour through text and nothing else.

/// Declares an enum with the wire form `{"type":"tag", ..fields in declaration order}`.
///
/// Serialisation is derived; reading is generated here, since the derived reader of tagged enums buffers,
/// rounds and lets unknown fields pass in variants without fields.
macro_rules! tagged {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$vmeta:meta])*
                $variant:ident = $tag:literal $( {
                    $( $(#[$fmeta:meta])* $field:ident : $type:ty ),* $(,)?
                } )?
            ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "type")]
        pub enum $name {
            $(
                $(#[$vmeta])*
                #[serde(rename = $tag)]
                $variant $( { $( $(#[$fmeta])* $field : $type ),* } )?
            ),*
        }

        impl $name {
            /// Every tag of this enum, in declaration order.
            pub const TAGS: &'static [&'static str] = &[ $( $tag ),* ];

            /// The `type` of this value on the wire.
            #[must_use]
            pub const fn tag(&self) -> &'static str {
                match self {
                    $( Self::$variant { .. } => $tag ),*
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;

                impl<'de> serde::de::Visitor<'de> for Reader {
                    type Value = $name;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str(concat!("an object of ", stringify!($name), " with a `type`"))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        match $crate::vocabulary::wire::tag(map)? {
                            $crate::vocabulary::wire::Tagged::First(tag, fields) => fields_of(&tag, fields),
                            $crate::vocabulary::wire::Tagged::Later(tag, fields) => {
                                fields_of(&tag, &mut serde_json::Deserializer::from_str(&fields))
                                    .map_err(serde::de::Error::custom)
                            }
                        }
                    }
                }

                fn fields_of<'de, D: serde::Deserializer<'de>>(tag: &str, fields: D) -> Result<$name, D::Error> {
                    match tag {
                        $(
                            $tag => {
                                #[derive(serde::Deserialize)]
                                #[serde(deny_unknown_fields)]
                                struct Fields { $( $( $(#[$fmeta])* $field : $type ),* )? }
                                #[allow(unused_variables)]
                                let fields = <Fields as serde::Deserialize>::deserialize(fields)?;
                                Ok($name::$variant { $( $( $field: fields.$field ),* )? })
                            }
                        )*
                        other => Err(serde::de::Error::unknown_variant(other, $name::TAGS)),
                    }
                }

                deserializer.deserialize_map(Reader)
            }
        }
    };
}
pub(crate) use tagged;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde_json::value::RawValue;

/// A tagged object whose tag was found.
pub(crate) enum Tagged<'de, A> {
    /// The tag came first: the fields stream on.
    First(Cow<'de, str>, MapAccessDeserializer<A>),
    /// It came later, as from writers that sort their keys: the other fields, as one JSON object.
    Later(String, String),
}

/// Finds the `type` field of a tagged object.
pub(crate) fn tag<'de, A: MapAccess<'de>>(mut map: A) -> Result<Tagged<'de, A>, A::Error> {
    let first = map.next_key::<Text<'de>>()?.ok_or_else(|| A::Error::missing_field("type"))?.0;
    if first == "type" {
        let tag = map.next_value::<Text<'de>>()?.0;
        return Ok(Tagged::First(tag, MapAccessDeserializer::new(map)));
    }
    let mut fields = BTreeMap::new();
    let mut name = Some(first.into_owned());
    while let Some(next) = name {
        if fields.insert(next.clone(), map.next_value::<Box<RawValue>>()?).is_some() {
            return Err(A::Error::custom(format!("duplicate field `{next}`")));
        }
        name = map.next_key()?;
    }
    let tag = fields.remove("type").ok_or_else(|| A::Error::missing_field("type"))?;
    let tag = serde_json::from_str(tag.get()).map_err(|_| A::Error::custom("`type` is a string"))?;
    Ok(Tagged::Later(tag, serde_json::to_string(&fields).map_err(A::Error::custom)?))
}

/// A string that is borrowed where the reader allows it.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Declares a struct whose wire form is a JSON object and nothing else. A derived reader would take an array
/// of the fields too; this one takes objects only, refuses unknown fields, and fills absent ones where the
/// struct says `default`.
macro_rules! object {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$fmeta:meta])* pub $field:ident : $type:ty ),* $(,)?
        }
    ) => {
        $crate::vocabulary::wire::object! { @declare [] $(#[$meta])* $name { $( $(#[$fmeta])* $field : $type ),* } }
    };
    (
        default
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$fmeta:meta])* pub $field:ident : $type:ty ),* $(,)?
        }
    ) => {
        $crate::vocabulary::wire::object! {
            @declare [default] $(#[$meta])* $name { $( $(#[$fmeta])* $field : $type ),* }
        }
    };
    (
        @declare [$($default:ident)?] $(#[$meta:meta])* $name:ident { $( $(#[$fmeta:meta])* $field:ident : $type:ty ),* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(deny_unknown_fields $(, $default)?))]
        pub struct $name {
            $( $(#[$fmeta])* pub $field : $type ),*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;

                impl<'de> serde::de::Visitor<'de> for Reader {
                    type Value = $name;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str(concat!("an object of ", stringify!($name)))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        #[derive(serde::Deserialize)]
                        #[serde(deny_unknown_fields $(, $default)?)]
                        struct Fields { $( $(#[$fmeta])* $field : $type ),* }

                        $crate::vocabulary::wire::object! { @fallback [$($default)?] $name { $($field),* } }

                        let fields: Fields =
                            serde::Deserialize::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                        Ok($name { $( $field: fields.$field ),* })
                    }
                }

                deserializer.deserialize_map(Reader)
            }
        }
    };
    ( @fallback [] $name:ident { $($field:ident),* } ) => {};
    ( @fallback [default] $name:ident { $($field:ident),* } ) => {
        impl Default for Fields {
            fn default() -> Self {
                let $name { $($field),* } = <$name as Default>::default();
                Self { $($field),* }
            }
        }
    };
}
pub(crate) use object;

/// Closed enums without data: the wire form is the name itself.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $word:literal ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $( $(#[$vmeta])* #[serde(rename = $word)] $variant ),*
        }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[ $( Self::$variant ),* ];

            /// The word on the wire.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word ),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.word())
            }
        }
    };
}
pub(crate) use words;
