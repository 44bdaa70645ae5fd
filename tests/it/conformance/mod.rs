//! The suites for an embedder's own parts: a part that keeps every rule passes, and each rule is broken by a part
//! that is broken in a way such parts are.

mod host;
mod judge;
mod model;
mod tools;

/// Waits where time is virtual: patience costs nothing.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future)
}

/// Sends a request in a task of its own, which nobody gives up.
async fn unheeding<T: Send + 'static>(request: impl Future<Output = T> + Send + 'static) -> T {
    tokio::spawn(request).await.expect("the request comes to an end")
}
