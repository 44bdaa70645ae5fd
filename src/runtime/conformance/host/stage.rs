//! What a host gets.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::scene::{FACT, Scene};
use super::watched::Watched;
use crate::runtime::ports::{Judge, JudgeQuestion, Judgement, Model, ModelAnswer, ModelCall, ModelFailure, Toolset};
use crate::runtime::store::Store;
use crate::runtime::{Builder, Runtime, VirtualClock};
use crate::vocabulary::fact::Statement;
use crate::vocabulary::ids::RunId;
use crate::vocabulary::json::Json;
use crate::vocabulary::llm;
use crate::vocabulary::outcome::ReleaseOutcome;
use crate::vocabulary::spec::{Spec, ToolSpec};
use crate::vocabulary::tool::ToolOutput;

/// One run to be served.
#[derive(Clone)]
pub struct Stage {
    scene: Scene,
    model: Played,
    store: Watched,
    screen: Screen,
}

impl fmt::Debug for Stage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stage").field("scene", &self.scene).finish_non_exhaustive()
    }
}

impl Stage {
    pub(super) fn new(scene: Scene, store: Arc<dyn Store>) -> Self {
        let screen = Screen::default();
        let model = Played { scene, asked: watch::Sender::new(None) };
        Self { scene, model, store: Watched::new(store, scene, screen.clone()), screen }
    }

    /// What happens in it. A host that looks at this is checked for nothing.
    #[must_use]
    pub const fn scene(&self) -> Scene {
        self.scene
    }

    /// What the run is asked to do.
    #[must_use]
    pub fn spec(&self) -> Spec {
        self.scene.spec()
    }

    /// A builder that has model, tools, judge, store and a virtual clock already. Put your own around them where
    /// you do so in production.
    #[must_use]
    pub fn builder(&self) -> Builder {
        let restart = ToolSpec { confirm: true, ..ToolSpec::new("restart") };
        let tools = Toolset::new()
            .with(ToolSpec::evidence("look"), |_: Json, _| async {
                Ok(ToolOutput::facts("seen", [Statement::new(FACT)]))
            })
            .with(restart, |_: Json, _| async { Ok(ToolOutput::text("restarted")) });
        let builder = Runtime::builder().model(self.model.clone()).tools(tools).judge(self.model.clone());
        builder.store(self.store.clone()).clock(VirtualClock::starting_at(1_700_000_000_000))
    }

    /// The model, to be wrapped.
    #[must_use]
    pub fn model(&self) -> Played {
        self.model.clone()
    }

    /// The store of the run.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    /// What the reader sees.
    #[must_use]
    pub const fn screen(&self) -> &Screen {
        &self.screen
    }

    pub(super) fn watched(&self) -> Watched {
        self.store.clone()
    }

    /// Cancels the run, in the scene that is about that: from another session, once its model is silent.
    pub(super) async fn cancels(&self, other: &Arc<dyn Store>) {
        if self.scene != Scene::Cancelled {
            return;
        }
        let mut asked = self.model.asked.subscribe();
        // The sender lives in here, so the wait cannot fail.
        let run = asked.wait_for(Option::is_some).await.ok().and_then(|run| run.clone());
        let runtime = Runtime::builder().model(self.model.clone()).store(Watched::plain(Arc::clone(other))).build();
        if let (Some(run), Ok(runtime)) = (run, runtime) {
            // A host that served the run otherwise is told so by what it showed.
            let _refused = runtime.cancel(&run, "a reader who changed their mind").await;
        }
    }
}

/// The model and the judge of a scene.
#[derive(Debug, Clone)]
pub struct Played {
    scene: Scene,
    /// The run whose model has nothing more to say.
    asked: watch::Sender<Option<RunId>>,
}

impl Model for Played {
    async fn respond(&self, call: ModelCall) -> Result<ModelAnswer, ModelFailure> {
        let place = (call.call.0 as usize).saturating_sub(1);
        match self.scene.answers().into_iter().nth(place) {
            Some(answer) => Ok(answer),
            None => {
                self.asked.send_replace(Some(call.run));
                std::future::pending().await
            }
        }
    }
}

impl Judge for Played {
    async fn judge(&self, _: JudgeQuestion) -> Result<Judgement, llm::Error> {
        Ok(Judgement { verdict: self.scene.verdict(), usage: None })
    }
}

/// What the reader of a run sees. Every copy is the same screen.
#[derive(Debug, Clone, Default)]
pub struct Screen(Arc<Mutex<Vec<Moment>>>);

/// Something that happened, in order.
#[derive(Debug, Clone)]
pub(super) enum Moment {
    /// A release was shown.
    Release(ReleaseOutcome, String),
    /// Something else was shown.
    Notice(String),
    /// The release was acknowledged.
    Acknowledged,
}

impl Screen {
    /// Shows a release, as that: everything that the reader sees of it.
    pub fn release(&self, outcome: ReleaseOutcome, text: impl Into<String>) {
        self.note(Moment::Release(outcome, text.into()));
    }

    /// Shows anything else: progress, questions, errors, a stream of text.
    pub fn notice(&self, text: impl Into<String>) {
        self.note(Moment::Notice(text.into()));
    }

    pub(super) fn note(&self, moment: Moment) {
        self.moments().push(moment);
    }

    pub(super) fn log(&self) -> Vec<Moment> {
        self.moments().clone()
    }

    fn moments(&self) -> MutexGuard<'_, Vec<Moment>> {
        // Whole between any two calls, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
