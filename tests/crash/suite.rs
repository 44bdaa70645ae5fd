//! Names, filters, and the lines that are printed: as a test program of the standard harness does it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A test and its name, which is a sentence.
pub(crate) type Test = (&'static str, fn());

/// Which tests are wanted.
#[derive(Default)]
struct Wanted {
    filters: Vec<String>,
    skipped: Vec<String>,
    exact: bool,
    list: bool,
}

impl Wanted {
    fn read(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut wanted = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => wanted.exact = true,
                "--list" => wanted.list = true,
                "--skip" => wanted.skipped.extend(arguments.next()),
                // These of the standard harness have a value.
                "--test-threads" | "--format" | "--color" | "--logfile" => drop(arguments.next()),
                option if option.starts_with('-') => {}
                _ => wanted.filters.push(argument),
            }
        }
        wanted
    }

    fn takes(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skipped.iter().any(fits)
    }
}

/// Runs those that were asked for.
pub(crate) fn run(tests: &[Test]) -> ExitCode {
    let wanted = Wanted::read(std::env::args().skip(1));
    let chosen: Vec<&Test> = tests.iter().filter(|(name, _)| wanted.takes(name)).collect();
    if wanted.list {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let (begun, mut failed) = (Instant::now(), Vec::new());
    for (name, test) in &chosen {
        let began = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        let word = if passed { "ok" } else { "FAILED" };
        println!("test {name} ... {word} ({:.1} s)", began.elapsed().as_secs_f64());
        if !passed {
            failed.push(*name);
        }
    }
    let passed = chosen.len() - failed.len();
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    if !failed.is_empty() {
        println!("\nfailures:");
        failed.iter().for_each(|name| println!("    {name}"));
    }
    let (out, seconds) = (tests.len() - chosen.len(), begun.elapsed().as_secs_f64());
    println!(
        "\ntest result: {word}. {passed} passed; {} failed; 0 ignored; 0 measured; {out} filtered out; finished in \
         {seconds:.2}s\n",
        failed.len()
    );
    println!("{passed} passed, {} failed", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does the same with each, two at a time. All are done, whatever fails; then the first failure is told.
pub(crate) fn each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(item))) {
                        failures.lock().unwrap().push(panic);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    let count = failures.len();
    if count > 0 {
        panic!("{count} of {} failed", items.len());
    }
}
