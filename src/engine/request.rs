//! What a driver needs to perform a model call: the request whose digest the effect carries.

use std::sync::Arc;

use crate::machines::toolbox::Tool;
use crate::vocabulary::effect::{Purpose, ToolOffer};
use crate::vocabulary::message::Message;
use crate::vocabulary::spec::{DraftSpec, ModelSpec};

/// A model request, whole.
#[derive(Debug, Clone)]
pub struct ModelRequest<'a> {
    /// The model and how it is asked.
    pub model: &'a ModelSpec,
    /// What for.
    pub purpose: Purpose,
    /// Everything the model is shown, oldest first.
    pub messages: &'a [Arc<Message>],
    /// What plugins add to this request alone: it comes after the messages.
    pub context: &'a [Arc<Message>],
    /// The tools it is offered: none when they are withdrawn.
    pub tools: Vec<&'a Arc<Tool>>,
    /// Whether tools are offered.
    pub offer: ToolOffer,
    /// The form that an answer must have. The model has to be told: the transcript holds what the spec says,
    /// and a repair's notice, but no instruction on the form (SPEC 10).
    pub answer: &'a DraftSpec,
}
