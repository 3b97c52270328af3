//! What cannot be is refused, and a first release counts from when it was asked for.

use super::*;

/// However long a quantum is at work before the command is heard.
#[test]
fn the_first_release_counts_from_the_command() {
    let upcalls = Upcalls::start(fair()).unwrap();
    let (tell, told) = mpsc::channel();
    let period = MS * 200;
    let late = upcalls.create(spec("late", period), move |call| {
        tell.send(call.paced.release).unwrap();
        call.end();
    });
    let late = Arc::new(late.unwrap());
    let (runs, asked) = (Arc::clone(&late), mpsc::channel());
    let busy = upcalls.create(spec("busy", MS), move |call| {
        let before = now();
        runs.run().unwrap();
        let after = now();
        asked.0.send([before, after]).unwrap();
        while now() == after {}
        call.end();
    });
    let busy = busy.unwrap();
    busy.run().unwrap();
    let [earliest, latest] = asked.1.recv().unwrap().map(|asked| asked + period);
    let first = told.recv().unwrap();
    assert!((earliest..=latest).contains(&first));
}
