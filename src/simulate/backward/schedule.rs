//! From which states to compute again: binomial checkpoints.
//!
//! In come how many states are to be visited from the last to the first and how many can be kept; out goes how far to go from a state that is
//! kept before the next one is.
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

/// Where the next state is kept on the way from the last one that is, `from`, to the one that is wanted, `to`, with room for `slots` more; none if there is no
/// room, or nothing to go.
pub(in crate::simulate) fn next(from: u64, to: u64, slots: u64) -> Option<u64> {
    (slots > 0 && from < to).then(|| from + ahead(to - from + 1, slots))
}

/// How many steps are taken on the way back from the last of so many, with room for `slots` states besides that of the start.
pub(in crate::simulate) fn again(steps: u64, slots: u64) -> u64 {
    let (mut kept, mut taken) = (vec![0], 0);
    let go = |kept: &mut Vec<u64>, to: u64| {
        while let Some(at) = next(kept[kept.len() - 1], to, (slots + 1).saturating_sub(kept.len() as u64)) {
            kept.push(at);
        }
    };
    go(&mut kept, steps);
    for step in (0..=steps).rev() {
        while kept.len() > 1 && kept[kept.len() - 1] > step {
            kept.pop();
        }
        taken += step - kept[kept.len() - 1];
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
            assert_eq!(again(count, count), 0, "{count}");
        }
    }

    #[test]
    fn steps_that_are_taken_again() {
        // Without room each state is computed from the start.
        assert_eq!(again(7, 0), 28);
        // With room for one more the state in the middle is kept.
        assert_eq!([next(0, 7, 1), next(0, 7, 0), next(7, 7, 3)], [Some(4), None, None]);
        for (steps, slots) in [(19, 2), (100, 5), (1000, 20), (100_000, 100)] {
            let times = again(steps, slots) as f64 / steps as f64;
            let most = (1..).find(|&times| reach(slots + 1, times) > steps).unwrap();
            assert!(times > 0.5 && times <= most as f64, "{steps} {slots}: {times}, {most}");
        }
    }
}
