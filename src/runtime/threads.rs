//! A few threads that wait for work without going to sleep at once.
//!
//! In comes one job for good and, again and again, the wish that every worker run it; out goes the moment when all are done.
//! A waiting worker spins for some microseconds, then parks.
//! Never true here: that the job differs between runs, or that a run returns before every worker has finished.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// How often a waiting thread looks before it yields or parks.
const SPINS: u32 = 4000;

/// How often a thread at a barrier looks before it yields. Less than for new work: the others have as much to do as this one, so if
/// they are not there soon, one of them needs this processor.
const BARRIER_SPINS: u32 = 300;

/// Workers and their job.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    job: Box<dyn Fn(usize) + Send + Sync>,
    /// Counts the runs asked for.
    round: AtomicU64,
    /// Workers that have not finished the current run.
    pending: AtomicUsize,
    /// Whether each worker sleeps or is about to.
    parked: Vec<AtomicBool>,
    failed: AtomicBool,
    stop: AtomicBool,
    /// Where the stack of the calling thread was in the current run.
    stack: AtomicUsize,
}

impl Pool {
    /// A pool whose `run` calls `job(0)` to `job(workers - 1)`, the first on the calling thread. Fewer threads than asked for
    /// are no error: the calling thread does what is left.
    pub fn new(workers: usize, job: impl Fn(usize) + Send + Sync + 'static) -> Pool {
        let shared = Arc::new(Shared {
            job: Box::new(job),
            round: AtomicU64::new(0),
            pending: AtomicUsize::new(0),
            parked: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            stack: AtomicUsize::new(0),
        });
        let spawn = |worker: usize| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("neuro-{worker}")).spawn(move || shared.serve(worker)).ok()
        };
        let workers = (1..workers).map_while(spawn).collect();
        Pool { shared, workers }
    }

    /// How many threads it has, the calling one included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs the job on every worker and waits. False if one of them panicked, now or earlier.
    pub fn run(&mut self) -> bool {
        let shared = &*self.shared;
        shared.pending.store(self.workers.len(), Ordering::Release);
        shared.stack.store(stack(), Ordering::Relaxed);
        shared.round.fetch_add(1, Ordering::SeqCst);
        for (worker, parked) in self.workers.iter().zip(&shared.parked[1.min(shared.parked.len())..]) {
            if parked.load(Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
        shared.attempt(0);
        for left in self.workers.len() + 1..shared.parked.len() {
            shared.attempt(left);
        }
        let mut looks = 0;
        while shared.pending.load(Ordering::Acquire) != 0 {
            looks += 1;
            if looks < SPINS {
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
        !shared.failed.load(Ordering::Acquire)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.round.fetch_add(1, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker catches the panics of its job.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn attempt(&self, worker: usize) {
        let place = self.stack.load(Ordering::Relaxed);
        if catch_unwind(AssertUnwindSafe(|| with_stack_at(place, &mut || (self.job)(worker)))).is_err() {
            self.failed.store(true, Ordering::Release);
        }
    }

    fn serve(&self, worker: usize) {
        let mut done = 0;
        loop {
            let mut looks = 0;
            while self.round.load(Ordering::Acquire) == done {
                looks += 1;
                if looks < SPINS {
                    std::hint::spin_loop();
                } else {
                    self.park(worker, done);
                }
            }
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            done += 1;
            self.attempt(worker);
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Sleeps until the next round. The order of the two accesses here and in `run` makes sure that one thread sees the other.
    fn park(&self, worker: usize, done: u64) {
        self.parked[worker].store(true, Ordering::SeqCst);
        if self.round.load(Ordering::SeqCst) == done {
            thread::park();
        }
        self.parked[worker].store(false, Ordering::SeqCst);
    }
}

/// Bytes of the stack after which places in memory look alike to a processor that asks what a load may have to wait for.
const PAGE: usize = 4096;

/// Where the stack is, about.
#[inline(never)]
fn stack() -> usize {
    let here = 0u8;
    std::hint::black_box(&raw const here).addr()
}

/// Calls `f` with the stack as far into a page as if `place` were where it is, to 16 bytes.
///
/// A load whose address ends as that of an earlier store waits for it in vain. Kernels store much on the stack, and load constants: the speed of a
/// large one depends on where its stack lies (the unconnected olive of `benches/before.py` in f64), and threads that meet go as fast as the slowest.
fn with_stack_at(place: usize, f: &mut dyn FnMut()) {
    let down = stack().wrapping_sub(place) % PAGE;
    let deepest = [deeper::<0>, deeper::<1024>, deeper::<2048>, deeper::<3072>];
    let deep = [deeper::<0>, deeper::<256>, deeper::<512>, deeper::<768>];
    let low = [deeper::<0>, deeper::<64>, deeper::<128>, deeper::<192>];
    let lower = [deeper::<0>, deeper::<16>, deeper::<32>, deeper::<48>];
    let [a, b, c, d] = [down / 1024, down / 256 % 4, down / 64 % 4, down / 16 % 4];
    deepest[a](&mut || deep[b](&mut || low[c](&mut || lower[d](f))));
}

/// Calls `f` with so many bytes of the stack taken.
#[inline(never)]
fn deeper<const BYTES: usize>(f: &mut dyn FnMut()) {
    let taken = [MaybeUninit::<u8>::uninit(); BYTES];
    std::hint::black_box(&taken);
    f();
    std::hint::black_box(&taken);
}

/// Where a fixed number of threads wait for each other, again and again.
///
/// A waiting thread spins, then yields: the others are supposed to be at work right now.
pub struct Barrier {
    /// How often each member has come.
    rounds: Vec<Alone<AtomicUsize>>,
    broken: Alone<AtomicBool>,
}

/// Something on lines of a cache that nothing else is on: who writes next to it does not disturb who reads it. Processors
/// fetch lines of 64 bytes in pairs.
#[repr(align(128))]
pub struct Alone<T>(pub T);

impl Barrier {
    /// A barrier for so many threads.
    pub fn new(members: usize) -> Barrier {
        let rounds = (0..members).map(|_| Alone(AtomicUsize::new(0))).collect();
        Barrier { rounds, broken: Alone(AtomicBool::new(false)) }
    }

    /// For how many threads it is.
    pub fn members(&self) -> usize {
        self.rounds.len()
    }

    /// How often a member has come since the barrier was new.
    pub fn met(&self, member: usize) -> usize {
        self.rounds[member].0.load(Ordering::Relaxed)
    }

    /// Waits, as one of the members, until all have come as often; what they did before is seen by all after. False if one will
    /// never come.
    pub fn wait(&self, member: usize) -> bool {
        // Each writes a line of its own, and reads those of the others: one way instead of there and back.
        let round = self.met(member).wrapping_add(1);
        self.rounds[member].0.store(round, Ordering::Release);
        for Alone(other) in &self.rounds {
            let mut looks = 0;
            // Others are one round ahead at most.
            while ![round, round.wrapping_add(1)].contains(&other.load(Ordering::Acquire)) {
                if self.broken.0.load(Ordering::Acquire) {
                    return false;
                }
                looks += 1;
                if looks < BARRIER_SPINS {
                    std::hint::spin_loop();
                } else {
                    thread::yield_now();
                }
            }
        }
        true
    }

    /// Says that a thread will not come any more: nobody waits until the next `mend`.
    pub fn break_up(&self) {
        self.broken.0.store(true, Ordering::Release);
    }

    /// Makes it new. Nobody may be waiting.
    pub fn mend(&self) {
        self.rounds.iter().for_each(|round| round.0.store(0, Ordering::Relaxed));
        self.broken.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_worker_runs_once_per_round() {
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let job = Arc::clone(&counts);
        let mut pool = Pool::new(3, move |worker| {
            job[worker].fetch_add(1, Ordering::Relaxed);
        });
        for round in 0..200 {
            if round % 50 == 0 {
                thread::sleep(Duration::from_millis(5)); // long enough for the workers to park
            }
            assert!(pool.run());
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == round + 1));
        }
    }

    #[test]
    fn all_workers_have_the_stack_equally_far_into_a_page() {
        let places: Arc<Vec<AtomicUsize>> = Arc::new((0..4).map(|_| AtomicUsize::new(0)).collect());
        let seen = Arc::clone(&places);
        let mut pool = Pool::new(4, move |worker| seen[worker].store(stack(), Ordering::Relaxed));
        for call in [deeper::<0>, deeper::<16>, deeper::<112>, deeper::<1008>, deeper::<3008>] {
            call(&mut || assert!(pool.run()));
            let first = places[0].load(Ordering::Relaxed);
            for place in &places[1..] {
                let apart = place.load(Ordering::Relaxed).wrapping_sub(first) % PAGE;
                assert!(!(64..=PAGE - 64).contains(&apart), "{apart}");
            }
        }
    }

    #[test]
    fn nobody_passes_a_barrier_before_all_have_come() {
        let (barrier, count) = (Barrier::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for member in 0..3 {
                let (barrier, count) = (&barrier, &count);
                scope.spawn(move || {
                    for round in 1..=500 {
                        count.fetch_add(1, Ordering::Relaxed);
                        assert!(barrier.wait(member));
                        assert_eq!(count.load(Ordering::Relaxed), 3 * round);
                        assert!(barrier.wait(member));
                        assert_eq!(barrier.met(member), 2 * round);
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_at_a_broken_barrier() {
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait(0));
            barrier.break_up();
            assert!(!waiting.join().unwrap());
        });
        assert_eq!([0, 1].map(|member| barrier.met(member)), [1, 0]);
        barrier.mend();
        assert_eq!([0, 1].map(|member| barrier.met(member)), [0, 0], "all begin anew together");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait(0));
            assert!(barrier.wait(1) && waiting.join().unwrap());
        });
    }

    #[test]
    fn a_panic_is_reported() {
        let mut pool = Pool::new(2, |worker| assert_ne!(worker, 1, "a job that fails on purpose"));
        assert!(!pool.run());
    }
}
