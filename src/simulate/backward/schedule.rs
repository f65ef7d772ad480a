//! From which states to compute again: binomial checkpoints.
//!
//! In come how many states are to be visited from the last to the first and how many can be kept; out goes how far to go from a state that is
//! kept before the next one is, and what is kept.
//! Never true here: more states are kept than there is room for.

/// How many states can be visited backward with room for `slots` of them, the first one of which is kept, if no step between them is taken more than `times`
/// times.
fn reach(slots: u64, times: u64) -> u64 {
    // The number of ways to choose, which is a whole number after each factor.
    let mut ways: u128 = 1;
    for i in 1..=u128::from(slots.min(times)) {
        ways = ways * (u128::from(slots.max(times)) + i) / i;
        if ways > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    ways as u64
}

/// How many steps behind a kept state the next one is kept, where `count` states (the kept one among them) are still to be visited and there is room for
/// `slots` more, at least one.
fn ahead(count: u64, slots: u64) -> u64 {
    let mut times = 1;
    while reach(slots + 1, times) < count {
        times += 1;
    }
    // What lies behind the next one is visited with a slot less.
    let behind = reach(slots, times).min(count - 1);
    (count - behind).max(1)
}

/// What is kept after some steps, from the first one on.
pub(in crate::simulate) struct Kept<V> {
    /// How many there is room for.
    room: u64,
    all: Vec<(u64, V)>,
}

impl<V> Kept<V> {
    /// Nothing yet, with room for so many, at least one.
    pub fn new(room: u64) -> Kept<V> {
        Kept { room, all: Vec::new() }
    }

    /// How many are kept.
    pub fn count(&self) -> u64 {
        self.all.len() as u64
    }

    /// The last one, and after how many steps it was.
    pub fn last(&self) -> Option<(u64, &V)> {
        self.all.last().map(|(at, value)| (*at, value))
    }

    /// After how many steps the next one is kept, on the way from the last one to what is wanted after `to`; none if there is no room, or nothing to go.
    pub fn next(&self, to: u64) -> Option<u64> {
        let Some((from, _)) = self.last() else { return Some(0) };
        let slots = self.room.saturating_sub(self.count());
        (slots > 0 && from < to).then(|| from + ahead(to - from + 1, slots))
    }

    /// Keeps one more.
    pub fn keep(&mut self, at: u64, value: V) {
        self.all.push((at, value));
    }

    /// Takes away the last one, if it is of more steps than these.
    pub fn behind(&mut self, step: u64) -> Option<V> {
        self.all.pop_if(|(at, _)| *at > step).map(|(_, value)| value)
    }

    /// Takes away all.
    pub fn clear(&mut self) -> impl Iterator<Item = V> {
        self.all.drain(..).map(|(_, value)| value)
    }
}

/// How many steps are taken on the way back from the last of so many, with room for so many states.
pub(in crate::simulate) fn again(steps: u64, room: u64) -> u64 {
    let (mut kept, mut taken) = (Kept::new(room), 0);
    let go = |kept: &mut Kept<()>, to: u64| {
        while let Some(at) = kept.next(to) {
            kept.keep(at, ());
        }
    };
    go(&mut kept, steps);
    for step in (0..=steps).rev() {
        while kept.behind(step).is_some() {}
        taken += step - kept.last().map_or(0, |(at, ())| at);
        go(&mut kept, step);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_checkpoints_reach() {
        for (slots, times, states) in [(3, 3, 20), (5, 3, 56), (10, 3, 286), (8, 4, 495), (10, 5, 3003), (1, 7, 8)] {
            assert_eq!(reach(slots, times), states, "{slots} {times}");
        }
        assert_eq!(reach(1_000, 1_000), u64::MAX);
    }

    #[test]
    fn with_room_for_all_every_state_is_kept() {
        for count in 2..50 {
            assert_eq!(ahead(count, count - 1), 1, "{count}");
            assert_eq!(ahead(count, count + 3), 1, "{count}");
            assert_eq!(again(count, count + 1), 0, "{count}");
        }
    }

    #[test]
    fn steps_that_are_taken_again() {
        // Without room each state is computed from the start.
        assert_eq!(again(7, 1), 28);
        // With room for one more the state in the middle is kept.
        let mut kept = Kept::new(2);
        kept.keep(0, ());
        assert_eq!(kept.next(7), Some(4));
        kept.keep(4, ());
        assert_eq!(kept.next(7), None);
        // From 4 to 7, 6 and 5, and to 3 and 2, with 1 on the way.
        assert_eq!(again(7, 2), 3 + 2 + 1 + 3 + 1);
        for (steps, room) in [(19, 3), (100, 6), (1000, 21), (100_000, 101)] {
            let times = again(steps, room) as f64 / steps as f64;
            let most = (1..).find(|&times| reach(room, times) > steps).unwrap();
            assert!(times > 0.5 && times <= most as f64, "{steps} {room}: {times}, {most}");
        }
    }
}
