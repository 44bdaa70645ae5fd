//! What a bound allows, against a model that is written otherwise.

use portcullis::vocabulary::bound::Allowance;
use proptest::prelude::*;

use super::runner;

/// Splits the id at every place where a separator stands, instead of stripping a prefix.
pub(super) fn allows(allowance: &Allowance, id: &str) -> bool {
    let within = |namespace: &str| {
        let separated = ["/", ".", "__", ":"].into_iter().flat_map(|separator| {
            let places: Vec<usize> = (0..id.len()).filter(|at| id[*at..].starts_with(separator)).collect();
            places.into_iter().map(move |at| (at, at + separator.len()))
        });
        separated.into_iter().any(|(end, rest)| !namespace.is_empty() && &id[..end] == namespace && rest < id.len())
    };
    allowance.ids.iter().any(|exact| exact == id) || allowance.namespace.iter().any(|namespace| within(namespace))
}

#[test]
fn a_bound_allows_what_its_model_allows() {
    let text = "[ab._/:]{0,5}";
    let allowance = (proptest::option::of(text), proptest::collection::vec(text, 0..3))
        .prop_map(|(namespace, ids)| Allowance { namespace, ids });
    let (allowed, refused) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let tail = prop_oneof!["[._/:]{0,3}[ab]{0,2}", text];
    runner(4_000)
        .run(&(allowance, any::<bool>(), text, tail), |(allowance, beneath, id, tail)| {
            let id = match (&allowance.namespace, beneath) {
                (Some(namespace), true) => format!("{namespace}{tail}"),
                _ => id,
            };
            let expected = allows(&allowance, &id);
            let counted = if expected { &allowed } else { &refused };
            counted.set(counted.get() + 1);
            prop_assert_eq!(allowance.allows(&id), expected, "{:?} {:?}", allowance, id);
            Ok(())
        })
        .unwrap();
    assert!(allowed.get() > 400 && refused.get() > 400, "{allowed:?} {refused:?}");
}

#[test]
fn a_namespace_ends_at_a_separator_and_holds_something_behind_it() {
    let acme = Allowance::namespace("acme");
    for id in ["acme.look", "acme/look", "acme:look", "acme__look", "acme..", "acme.other.look"] {
        assert!(acme.allows(id), "{id}");
    }
    for id in ["acme", "acme.", "acme__", "acme_look", "acmelook", "acmes.look", "look", "", "Acme.look", "x.acme.look"]
    {
        assert!(!acme.allows(id), "{id}");
    }
    assert!(!Allowance::namespace("").allows(".look"));
    assert!(!Allowance::default().allows(""));
}
