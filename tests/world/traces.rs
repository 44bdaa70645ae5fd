//! Everything that is logged or traced in this process, at every level. There can be one listener in a process.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::thread::ThreadId;

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// What must never be heard: the key of the tests.
pub(crate) const KEY: &str = crate::models::asking::KEY;

static HEARD: AtomicU32 = AtomicU32::new(0);
static BETRAYED: AtomicU32 = AtomicU32::new(0);
static KEPT: Mutex<Vec<(ThreadId, Kept)>> = Mutex::new(Vec::new());

/// What one thread said: targets and texts.
pub(crate) type Kept = Arc<Mutex<Vec<(String, String)>>>;

/// Begins to listen, once.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_boxed_logger(Box::new(Ear)).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Ear)).unwrap();
    });
}

/// Begins to listen, and keeps what this thread says.
pub(crate) fn keep() -> Kept {
    let kept = Kept::default();
    KEPT.lock().unwrap().push((std::thread::current().id(), Arc::clone(&kept)));
    listen();
    kept
}

/// How much was heard.
pub(crate) fn heard() -> u32 {
    HEARD.load(Ordering::Relaxed)
}

/// How much of it held the key.
pub(crate) fn betrayed() -> u32 {
    BETRAYED.load(Ordering::Relaxed)
}

struct Ear;

fn hear(target: &str, text: String) {
    HEARD.fetch_add(1, Ordering::Relaxed);
    if text.contains(KEY) {
        BETRAYED.fetch_add(1, Ordering::Relaxed);
    }
    let thread = std::thread::current().id();
    if let Some((_, kept)) = KEPT.lock().unwrap().iter().find(|(keeps, _)| *keeps == thread) {
        kept.lock().unwrap().push((target.to_owned(), text));
    }
}

/// The fields of an event or a span, as one text.
#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl log::Log for Ear {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        hear(record.target(), record.args().to_string());
    }

    fn flush(&self) {}
}

impl<S: tracing::Subscriber> Layer<S> for Ear {
    fn on_new_span(&self, span: &tracing::span::Attributes<'_>, _: &tracing::span::Id, _: Context<'_, S>) {
        let mut fields = Fields::default();
        span.record(&mut fields);
        hear(span.metadata().target(), fields.0);
    }

    fn on_record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        hear("", fields.0);
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        hear(event.metadata().target(), fields.0);
    }
}
