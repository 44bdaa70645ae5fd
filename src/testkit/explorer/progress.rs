//! Liveness: from every state the run comes to an end by answers alone, and no answers keep it going for ever
//! (SPEC 13.I11).

/// The answers between states, by place. What interrupts a run is not among them: a cancellation would end any.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// From where to where.
    replies: Vec<(u32, u32)>,
    /// The places where a run has ended.
    ended: Vec<u32>,
}

/// What is wrong with a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standstill {
    /// No answers lead from here to an ending.
    NoWayOut(u32),
    /// Answers lead from here to here.
    Circle(u32),
}

impl Progress {
    pub(super) fn reply(&mut self, from: u32, to: u32) {
        self.replies.push((from, to));
    }

    pub(super) fn end(&mut self, place: u32) {
        self.ended.push(place);
    }

    /// The first place of all `places` that stands still.
    pub(super) fn standstill(&self, places: u32) -> Option<Standstill> {
        let before = Neighbours::of(places, self.replies.iter().map(|(from, to)| (*to, *from)));
        let mut ends = vec![false; places as usize];
        let mut reached = self.ended.clone();
        while let Some(place) = reached.pop() {
            if let Some(known @ false) = ends.get_mut(place as usize) {
                *known = true;
                reached.extend(before.of_place(place));
            }
        }
        let stuck = (0..).zip(&ends).find(|(_, ends)| !**ends).map(|(place, _)| Standstill::NoWayOut(place));
        stuck.or_else(|| self.circle(places).map(Standstill::Circle))
    }

    /// Takes away the places that nothing leads to, one after the other: what is left lies on a circle or behind
    /// one (Kahn 1962).
    fn circle(&self, places: u32) -> Option<u32> {
        let after = Neighbours::of(places, self.replies.iter().copied());
        let mut waiting = vec![0_u32; places as usize];
        for (_, to) in &self.replies {
            if let Some(count) = waiting.get_mut(*to as usize) {
                *count = count.saturating_add(1);
            }
        }
        let free = |waiting: &[u32], place: u32| waiting.get(place as usize).is_some_and(|count| *count == 0);
        let mut next: Vec<u32> = (0..places).filter(|place| free(&waiting, *place)).collect();
        while let Some(place) = next.pop() {
            for to in after.of_place(place) {
                if let Some(count) = waiting.get_mut(to as usize) {
                    *count = count.saturating_sub(1);
                }
                if free(&waiting, to) {
                    next.push(to);
                }
            }
        }
        (0..).zip(&waiting).find(|(_, count)| **count > 0).map(|(place, _)| place)
    }
}

/// Who comes after whom: the neighbours of a place stand side by side.
struct Neighbours {
    starts: Vec<usize>,
    places: Vec<u32>,
}

impl Neighbours {
    fn of(places: u32, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0_usize; (places as usize).saturating_add(1)];
        for (from, _) in pairs.clone() {
            if let Some(count) = starts.get_mut((from as usize).saturating_add(1)) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let (mut free, mut found) = (starts.clone(), vec![0; sum]);
        for (from, to) in pairs {
            if let Some(place) = free.get_mut(from as usize) {
                if let Some(slot) = found.get_mut(*place) {
                    *slot = to;
                }
                *place += 1;
            }
        }
        Self { starts, places: found }
    }

    fn of_place(&self, place: u32) -> impl Iterator<Item = u32> {
        let start = self.starts.get(place as usize).copied().unwrap_or_default();
        let end = self.starts.get((place as usize).saturating_add(1)).copied().unwrap_or(start);
        self.places.get(start..end).unwrap_or_default().iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Standstill};

    fn progress(replies: &[(u32, u32)], ended: &[u32]) -> Progress {
        Progress { replies: replies.to_vec(), ended: ended.to_vec() }
    }

    #[test]
    fn a_run_that_always_comes_to_an_end_stands_nowhere_still() {
        assert_eq!(progress(&[(0, 1), (0, 2), (1, 3), (2, 3)], &[3]).standstill(4), None);
    }

    #[test]
    fn a_place_without_a_way_to_an_ending_is_found() {
        assert_eq!(progress(&[(0, 1), (0, 2)], &[1]).standstill(3), Some(Standstill::NoWayOut(2)));
        assert_eq!(progress(&[], &[]).standstill(1), Some(Standstill::NoWayOut(0)));
    }

    #[test]
    fn answers_that_lead_round_in_a_circle_are_found_where_an_ending_is_near_too() {
        assert_eq!(progress(&[(0, 1), (1, 0), (1, 2)], &[2]).standstill(3), Some(Standstill::Circle(0)));
        assert_eq!(progress(&[(0, 1), (1, 1), (1, 2)], &[2]).standstill(3), Some(Standstill::Circle(1)));
    }
}
