//! How the suites call this embedder.

use embedder::{Page, serve};
use portcullis::runtime::conformance::host::{Screen, Stage};
use portcullis::vocabulary::llm::ToolRequest;
use portcullis::vocabulary::outcome::ReleaseOutcome;

/// The page as a screen of the suite.
pub struct OnScreen<'a>(pub &'a Screen);

impl Page for OnScreen<'_> {
    fn release(&self, outcome: ReleaseOutcome, text: String) {
        self.0.release(outcome, text);
    }

    fn notice(&self, text: &str) {
        self.0.notice(text);
    }
}

/// Serves a run of the suite as the shop serves one.
pub async fn on_a_screen(stage: Stage) {
    let runtime = stage.builder().build().expect("a runtime");
    serve(&runtime, stage.spec(), &OnScreen(stage.screen())).await;
}

/// What a model orders.
pub fn order(marker: &str) -> ToolRequest {
    ToolRequest { name: "order".to_owned(), arguments: format!(r#"{{"part":"{marker}"}}"#), provider_id: None }
}
