//! Whether counts add up, within each host and from one to the next.

use laxity_model::channels::handler::Late;
use laxity_net::channels::path::{Event, Lane};

use super::world::World;

impl World {
    /// Everything that came is in exactly one of the counts of what became of it, at each host; where links lose nothing, also from host to host.
    pub(super) fn adds_up(&self, is_lossless: bool) {
        for (channel, of) in self.channels.iter().enumerate() {
            for lane in Lane::ALL {
                let mut sent = self.began(channel, lane);
                for host in of.from + 1..of.to {
                    let number = self.numbers[channel][host];
                    let way_out = &self.hosts[host].way_out;
                    let passed = way_out.passed(number, lane).expect("it passes");
                    let packets = way_out.packets(number, lane).expect("it passes");
                    assert_eq!(passed.came, packets.queued + passed.dropped(), "{passed:?}");
                    if is_lossless {
                        assert_eq!(passed.came, sent);
                    }
                    sent = self.left(channel, host, lane);
                }
                let (came, ended) = self.ends[channel].counts(lane);
                let dropped = came.doubled + came.stale + came.malformed + came.no_buffer;
                assert_eq!(came.came, came.stored + came.complete + dropped, "{came:?}");
                if is_lossless {
                    assert_eq!(came.came, sent);
                }
                let judged = ended.in_time + ended.late + ended.within_error;
                assert_eq!(came.complete, ended.complete);
                assert_eq!(ended.complete, judged);
                let waits = self.ends[channel].ready(lane) as u64;
                let gone = ended.delivered + ended.discarded + waits;
                assert_eq!(ended.complete, gone, "{ended:?}");
                self.tells(channel, lane);
            }
        }
    }

    /// Of a lane where it begins. Answers how many packets of it have left.
    fn began(&self, channel: usize, lane: Lane) -> u64 {
        let from = self.channels[channel].from;
        let number = self.numbers[channel][from];
        let Some(began) = self.hosts[from].way_out.began(number, lane) else {
            return 0;
        };
        let counts = began.source;
        let gone = counts.demoted + counts.dropped + counts.displaced;
        assert_eq!(counts.offered, counts.taken + gone, "nothing waits");
        assert_eq!(counts.taken, began.handler.messages);
        let packets = self.hosts[from].way_out.packets(number, lane);
        assert_eq!(began.handler.packets, packets.expect("it begins").queued);
        self.left(channel, from, lane)
    }

    /// How many packets have left a host.
    fn left(&self, channel: usize, host: usize, lane: Lane) -> u64 {
        let way_out = &self.hosts[host].way_out;
        let number = self.numbers[channel][host];
        let packets = way_out.packets(number, lane).expect("it is open");
        let gone = packets.sent + packets.discarded + packets.refused + packets.closed;
        assert_eq!((packets.queued, way_out.there(number)), (gone, 0));
        assert!(packets.held_up <= packets.late && packets.late <= packets.sent);
        packets.sent
    }

    /// Each message up to the last that is known of was delivered, or late and discarded, or lost, and there is one event of each that was late or lost.
    fn tells(&self, channel: usize, lane: Lane) {
        let (_, ended) = self.ends[channel].counts(lane);
        let seen = &self.seen[channel];
        let delivered = seen.delivered.iter().filter(|one| one.lane == lane);
        let mut all: Vec<u64> = delivered.map(|one| one.message).collect();
        assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
        let (mut late, mut lost) = (0, 0);
        for event in &seen.events {
            match *event {
                Event::Late { message, .. } if lane == Lane::RealTime => {
                    late += 1;
                    if self.channels[channel].late == Late::Discard {
                        all.push(message);
                    }
                }
                Event::Lost {
                    lane: of,
                    first,
                    count,
                    ..
                } if of == lane => {
                    lost += count;
                    all.extend(first..first + count);
                }
                _ => {}
            }
        }
        assert_eq!((late, lost), (ended.late, ended.lost()));
        all.sort_unstable();
        let known = all.len() as u64;
        assert!(all.iter().copied().eq(0..known), "{all:?}");
    }
}
