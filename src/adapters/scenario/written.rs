//! Forms that are read as one thing and kept as another: their JSON Schema is that of what is written.

/// Gives a type the JSON Schema of the form it is read from.
macro_rules! written_as {
    ($kept:ty, $written:ty) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $kept {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                <$written as schemars::JsonSchema>::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$written as schemars::JsonSchema>::json_schema(generator)
            }
        }
    };
}
pub(super) use written_as;
