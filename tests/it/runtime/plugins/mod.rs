//! Plugins in real runs: what they are asked, what they do, how they fail, and what a replay needs of them.

mod failing;
mod points;
mod recovered;
mod shipped;

use std::sync::{Arc, Mutex};

use portcullis::adapters::stores::memory::MemoryStore;
use portcullis::composition::{PluginConfigError, PluginManifest, StateKey};
use portcullis::history::{Policy, replay};
use portcullis::runtime::plugins::{Contributions, HookAnswer, HookFailure, HookQuestion, Plugin};
use portcullis::runtime::ports::ModelCall;
use portcullis::runtime::{Builder, Ended, Thread, VirtualClock};
use portcullis::vocabulary::bound::{Allowance, Bound};
use portcullis::vocabulary::environment::{HookPoint, MergePolicy, StateScope};
use portcullis::vocabulary::json::Json;
use portcullis::vocabulary::message::{Message, Observation};
use portcullis::vocabulary::spec::{PluginSpec, Spec};

use super::{Answer, Talker, Workshop, ended, runtime, spec};

/// A list of texts that the thread keeps.
const NOTES: StateKey<Vec<String>> = StateKey::new(StateScope::Thread, "test.notes", MergePolicy::Exclusive);

/// What activates a plugin of a test.
type Activate = Box<dyn Fn(&Json) -> Result<Contributions, PluginConfigError> + Send + Sync>;

/// A plugin made of a manifest and a closure.
pub(super) struct Made {
    manifest: PluginManifest,
    activate: Activate,
}

impl Plugin for Made {
    fn manifest(&self) -> PluginManifest {
        self.manifest.clone()
    }

    fn activate(&self, config: &Json) -> Result<Contributions, PluginConfigError> {
        (self.activate)(config)
    }
}

fn made(
    manifest: PluginManifest,
    activate: impl Fn(&Json) -> Result<Contributions, PluginConfigError> + Send + Sync + 'static,
) -> Made {
    Made { manifest, activate: Box::new(activate) }
}

/// A plugin that contributes this to every run, and may do anything under the name of `test`.
pub(super) fn plugin(id: &str, contributions: impl Fn() -> Contributions + Send + Sync + 'static) -> Made {
    made(PluginManifest::new(id, generous()), move |_| Ok(contributions()))
}

fn generous() -> Bound {
    let named = || Allowance::namespace("test");
    Bound {
        tools: named(),
        state_keys: named(),
        hooks: HookPoint::ALL.to_vec(),
        action_kinds: named(),
        tool_gates: named(),
        release_gates: named(),
    }
}

/// A plugin with one hook.
fn hooked<F>(id: &str, point: HookPoint, hook: impl Fn(HookQuestion) -> F + Clone + Send + Sync + 'static) -> Made
where
    F: Future<Output = Result<HookAnswer, HookFailure>> + Send + 'static,
{
    plugin(id, move || Contributions::new().state_key(&NOTES).hook(point, hook.clone()))
}

/// A spec whose run these plugins take part in.
pub(super) fn with(plugins: &[(&str, &str)]) -> Spec {
    let named = |(id, config): &(&str, &str)| PluginSpec { id: (*id).to_owned(), config: Json::parse(config).unwrap() };
    Spec { plugins: plugins.iter().map(named).collect(), ..spec() }
}

/// Lines that plugins write down.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Vec<String>>>);

impl Notebook {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Lets the others work until it holds.
async fn until(holds: impl Fn() -> bool) {
    for _ in 0..1_000_000 {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to that");
}

/// What a run came to. Its history replays without any plugin.
struct Played {
    ended: Arc<Ended>,
    history: String,
    asked: Vec<ModelCall>,
    thread: Thread,
}

impl Played {
    /// Row and failure, as words.
    fn end(&self) -> (u8, String) {
        let failure = self.ended.ending.failure.as_ref();
        (self.ended.ending.row, failure.map(|failure| serde_json::to_string(failure).unwrap()).unwrap_or_default())
    }

    /// The observations that the model was shown last.
    fn observations(&self) -> Vec<Observation> {
        let messages = self.asked.last().unwrap().messages.iter();
        let shown = |message: &Arc<Message>| match &**message {
            Message::Observation(observation) => Some(observation.clone()),
            _ => None,
        };
        messages.filter_map(shown).collect()
    }
}

/// Runs the spec to its end, with the tools `look` and `act`.
async fn play(spec: Spec, answers: impl IntoIterator<Item = Answer>, build: impl FnOnce(Builder) -> Builder) -> Played {
    let (clock, store) = (VirtualClock::default(), MemoryStore::new());
    let reader = store.session();
    let model = Talker::new(&clock, answers);
    let asked = Arc::clone(&model.asked);
    let runtime = build(runtime(&clock, store, model, Workshop::new(&clock, 5))).build().unwrap();
    let handle = runtime.start(spec).await.unwrap();
    let ended = ended(&handle).await;
    let history = crate::stage::history(&reader, handle.run().as_str()).await;
    assert_eq!(replay(&*history, Policy::Stop).unwrap().divergences, Vec::new());
    let thread = runtime.thread(handle.run()).await.unwrap();
    let asked = asked.lock().unwrap().clone();
    Played { ended, history: String::from_utf8(history).unwrap(), asked, thread }
}
