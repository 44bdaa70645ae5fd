//! Whose span it is: the nearest agent among its ancestors.

use std::collections::BTreeMap;

use super::kind::Kind;
use super::span::Span;

/// For each span the index of its agent's span, if it has one. An agent's own is that of the agent around it.
///
/// Every chain of parents is walked once; a chain that leads back into itself has no agent.
pub(super) fn owners(spans: &[Span<'_>], kinds: &[Kind]) -> Vec<Option<usize>> {
    let places: BTreeMap<(&str, &str), usize> =
        spans.iter().enumerate().map(|(index, span)| ((&*span.trace, &*span.id), index)).collect();
    let parent = |index: usize| {
        let span = spans.get(index)?;
        places.get(&(&*span.trace, &*span.parent)).copied().filter(|parent| *parent != index)
    };
    let mut owners = vec![Owner::Unknown; spans.len()];
    for start in 0..spans.len() {
        let mut chain = Vec::new();
        let mut at = start;
        let found = loop {
            match owners.get(at) {
                Some(Owner::Unknown) => {}
                Some(Owner::Known(owner)) => break *owner,
                Some(Owner::Walked) | None => break None,
            }
            owners[at] = Owner::Walked;
            chain.push(at);
            match parent(at) {
                None => break None,
                Some(above) if kinds.get(above) == Some(&Kind::Agent) => break Some(above),
                Some(above) => at = above,
            }
        };
        for index in chain {
            owners[index] = Owner::Known(found);
        }
    }
    owners.into_iter().map(|owner| if let Owner::Known(owner) = owner { owner } else { None }).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Unknown,
    Walked,
    Known(Option<usize>),
}
