//! Stores: where records become durable.
