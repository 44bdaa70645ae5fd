use portcullis::engine::Engine;
use portcullis::vocabulary::input::Input;

fn main() {
    let refused = Engine::new().step(0, Input::DeadlineElapsed { displaced: None });
    assert!(refused.is_err());
}
