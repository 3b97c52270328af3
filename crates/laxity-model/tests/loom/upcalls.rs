//! What an executor and those who use it have together, under every interleaving of their threads that the memory model allows: the board of an upcall.
//! What is not here: that a port's doorbell rings rests on loads that are in one order for all threads (`SeqCst`), which the checker takes for weaker ones.

use laxity_model::executor::ExecutorError;
use laxity_model::program::upcalls::{Board, Counts, Standing};
use loom::sync::Arc;
use loom::thread;

/// Whoever finds the answer to its command finds what the command has done, and nothing of whoever had the place before.
#[test]
fn an_answer_comes_after_what_was_done_for_it() {
    for outcome in [Ok(()), Err(ExecutorError::Full)] {
        loom::model(move || {
            let board = Arc::new(Board::default());
            // Whoever had the place before.
            board.note_panic();
            board.yields();
            board.answers(1, Err(ExecutorError::NoSuchHandler));
            let executor = {
                let board = board.clone();
                thread::spawn(move || {
                    board.clear();
                    board.becomes(Standing::Suspended);
                    board.answers(2, outcome);
                })
            };
            if let Some(answer) = board.answer(2) {
                assert_eq!(answer, outcome);
                assert_eq!(board.standing(), Standing::Suspended);
                assert_eq!(board.counts(), Counts::default());
            }
            executor.join().unwrap();
            assert_eq!(board.answer(1), None);
            assert_eq!(board.answer(2), Some(outcome));
        });
    }
}

/// Of one that is at work each number is one that there was, and none goes back.
#[test]
fn counts_that_are_read_meanwhile_grow() {
    loom::model(|| {
        let board = Arc::new(Board::default());
        let executor = {
            let board = board.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    board.did(3);
                    board.yields();
                }
            })
        };
        let [first, second] = [0; 2].map(|_| board.counts());
        assert!([0, 3, 6].contains(&first.units) && first.yields <= 2);
        assert!(first.units <= second.units && first.yields <= second.yields);
        executor.join().unwrap();
        let last = board.counts();
        assert_eq!((last.units, last.yields), (6, 2));
    });
}
