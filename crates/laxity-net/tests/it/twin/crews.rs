//! Threads that take from several clients, or are raised by one.

use super::*;

impl Receiving {
    /// The video's packets first, by one of both ways.
    pub(super) fn crewed(&mut self, is_raised: bool) {
        match is_raised {
            true => self.raised(),
            false => self.in_order(),
        }
    }

    fn crew<'c>(&self, threads: &'c [Placement]) -> Crew<'c> {
        Crew {
            name: "crew",
            processor: CPU,
            threads,
            buffers: 32,
            work: WORK,
        }
    }

    /// A client for the video and one for the rest, whose packets one deferred call takes.
    fn in_order(&mut self) {
        let deliver = || deliver(&self.found);
        let (crew, both) = (
            self.crew(&[Placement::Deferred]),
            [Interest::In(&VIDEO), Interest::Default],
        );
        let made = crew.install_in_order(&mut self.program, &mut self.driver, both, deliver);
        assert_eq!(made.expect("nobody has them").0.len(), 1);
    }

    /// The same clients with a thread each, of which the video's is raised.
    fn raised(&mut self) {
        self.client(Interest::Default, (32, &[thread(8)]));
        let stated = Stated::new(1, Span::from_millis(1), 8, Span::from_millis(4));
        let due = (
            stated.expect("it is a rate"),
            Priority::new(20).expect("below 32"),
        );
        let deliver = || deliver(&self.found);
        let own = [thread(8)];
        let (crew, video) = (self.crew(&own), Interest::In(&VIDEO));
        let made = crew.install_due(&mut self.program, &mut self.driver, video, due, deliver);
        assert_eq!(made.expect("nobody has it").0.len(), 1);
    }
}

/// One who takes the video's packets first waits for the packet that he is at work on, which a thread that is raised does not.
#[test]
fn crews_take_the_first_clients_packets_first_or_are_raised_by_them() {
    let (ms, interrupts) = (Span::from_millis, Span::from_micros(100));
    for (is_raised, most) in [(false, 2), (true, 1)] {
        let arrangement = Arrangement::Crew { is_raised };
        let found = delays(arrangement);
        assert_eq!(found.len(), 450, "none is lost");
        let video = longest(&found, true);
        assert!(video < ms(most) + interrupts, "{arrangement:?}: {video}");
        assert!(longest(&found, false) > ms(8), "the bulk waits for itself");
    }
}
