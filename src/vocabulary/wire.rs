//! How our enums look on the wire.
//!
//! Every enum that carries data is a JSON object whose first field is `type`. The tag comes first so that
//! a reader streams the rest straight into the variant's fields: nothing is buffered, unknown fields and
//! duplicate keys are refused for every variant (those without fields too), and payloads keep their exact
//! numbers (SPEC 4).

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
                        out.write_str(concat!("an object of ", stringify!($name), " whose first field is `type`"))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let tag = $crate::vocabulary::wire::tag(&mut map)?;
                        let fields = serde::de::value::MapAccessDeserializer::new(map);
                        match tag.as_ref() {
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
                }

                deserializer.deserialize_map(Reader)
            }
        }
    };
}
pub(crate) use tagged;

use std::borrow::Cow;

use serde::de::{Error, MapAccess};

/// Reads the leading `type` field of a tagged object.
pub(crate) fn tag<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cow<'de, str>, A::Error> {
    match map.next_key::<Text<'de>>()? {
        Some(key) if key.0 == "type" => Ok(map.next_value::<Text<'de>>()?.0),
        Some(_) | None => Err(A::Error::custom("the first field must be `type`")),
    }
}

/// A string that is borrowed where the reader allows it.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

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
