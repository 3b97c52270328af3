//! Independent pieces of work on as many threads as there are.

use std::sync::Mutex;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{Progress, RunError};

/// Does a piece of work for each case, on `threads` threads; 0: one a processor. The results are in the order of the cases, whatever
/// the threads; progress hears the name of each case when it is done.
///
/// # Errors
///
/// The first by the order of the cases; [`RunError::CannotRun`] if the system gives no threads.
pub fn map<C: Send, T: Send>(
    cases: Vec<C>,
    threads: usize,
    name: impl Fn(&C) -> String + Sync,
    one: impl Fn(C) -> Result<T, RunError> + Sync,
    progress: &mut dyn Progress,
) -> Result<Vec<T>, RunError> {
    progress.begin(cases.len());
    let progress = Mutex::new(progress);
    // A thread that has nothing to do costs all others something: they look for work among them.
    let threads = threads.min(cases.len().max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
    let told = |case: C| {
        let name = name(&case);
        let made = one(case);
        if let Ok(mut progress) = progress.lock() {
            progress.run(&name, 0);
        }
        made
    };
    let made: Vec<Result<T, RunError>> = pool.install(|| cases.into_par_iter().map(told).collect());
    made.into_iter().collect()
}
