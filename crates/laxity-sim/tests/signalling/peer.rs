//! A neighbour that is no node: it says what the test says, and may be lost, mad or of an earlier life.

use std::sync::Arc;

use laxity_model::channels::asked::{Asked, Shortage};
use laxity_model::channels::clocks::Stamp;
use laxity_model::channels::signalling::link::Content;
use laxity_model::channels::signalling::{
    Cause, ChannelId, Confirm, Digest, Frame, Hold, HostId, LinkId, List, Message, Open, Session,
    Summary, Terms,
};
use laxity_model::{Instant, Span};

use super::admission::asked;
use super::world::{SHARE, World};

type Said = Message<Asked, Shortage>;

/// In place of host 0, before host 1, behind which host 2 is; or of host 2.
struct Peer {
    world: World,
    /// Of host 1.
    link: LinkId,
    session: Session,
    theirs: Session,
    said: u64,
}

impl Peer {
    fn new() -> Self {
        Self::in_place_of(0)
    }

    fn in_place_of(host: u32) -> Self {
        let mut world = World::line(3);
        world.kill(HostId(host));
        world.run(Span::from_millis(20));
        let session = |incarnation| Session {
            incarnation,
            count: 0,
        };
        let mut peer = Self {
            world,
            link: LinkId(u16::from(host == 2)),
            session: session(9),
            theirs: session(1),
            said: 0,
        };
        peer.beats(Span::from_millis(50));
        peer
    }

    fn channel(&self, number: u32) -> ChannelId {
        ChannelId {
            origin: HostId(0),
            generation: self.session.incarnation,
            number,
        }
    }

    fn frame(&mut self, heard: u64, content: Content<Said>) {
        let frame = Frame {
            from: self.session,
            to: Some(self.theirs),
            heard,
            content,
        };
        self.world.network.deliver(HostId(1), self.link, frame);
        self.world.listen();
    }

    fn says(&mut self, message: Said) {
        let number = self.said;
        self.said += 1;
        self.frame(0, Content::Message(number, message));
    }

    /// It lives for so long, and hears all that it is told.
    fn beats(&mut self, length: Span) {
        let end = self.world.network.now() + length;
        while self.world.network.now() < end {
            let sent = Instant::from_secs(1);
            self.frame(0, Content::Heartbeat(Stamp { sent, echo: None }));
            (1..40).for_each(|heard| self.frame(heard, Content::Heard));
            self.world.run(Span::from_millis(5));
        }
    }

    fn open(&self, number: u32, hosts: &[u32], least: &[Span]) -> Said {
        let open = Open {
            hold: Hold {
                channel: self.channel(number),
                version: 0,
            },
            route: hosts.iter().copied().map(HostId).collect::<Arc<[_]>>(),
            asked: asked(SHARE),
            within: Span::from_millis(10),
            propagation: Span::ZERO,
            least: least.into(),
        };
        Message::Open(Box::new(open))
    }

    fn opens(&mut self, number: u32) -> ChannelId {
        self.says(self.open(number, &[0, 1, 2], &[Span::ZERO]));
        self.beats(Span::from_millis(10));
        self.channel(number)
    }

    /// A summary of these.
    fn sums(&mut self, channels: &[ChannelId]) {
        let mut digest = Digest::default();
        channels.iter().for_each(|channel| digest.add(*channel));
        self.says(Message::Summary(Summary { digest, heard: 40 }));
    }

    fn there(&self, host: u32) -> usize {
        let node = self.world.network.node(HostId(host)).expect("it lives");
        assert!(node.agrees());
        node.channels().count()
    }
}

const REFRESH: Span = Span::from_millis(500);

#[test]
fn what_is_not_confirmed_in_three_refreshes_is_gone_everywhere() {
    assert_eq!(Terms::default().refresh, REFRESH);
    let mut peer = Peer::new();
    let channel = peer.opens(0);
    peer.beats(REFRESH);
    peer.sums(&[channel]);
    peer.beats(REFRESH * 3);
    assert_eq!([1, 2].map(|host| peer.there(host)), [1, 1]);
    peer.beats(REFRESH);
    assert_eq!([1, 2].map(|host| peer.there(host)), [0, 0]);
    let ended = peer.world.book_of(2, channel).ended;
    assert_eq!(ended[0].1, Cause::Unrefreshed(HostId(1)));
}

#[test]
fn what_is_in_none_of_three_lists_ends_and_the_others_stay() {
    let mut peer = Peer::new();
    let [kept, lost] = [0, 1].map(|number| peer.opens(number));
    for round in 0..3 {
        assert_eq!([1, 2].map(|host| peer.there(host)), [2, 2], "{round}");
        peer.sums(&[kept]);
        let channels = vec![kept];
        let last = true;
        peer.says(Message::List(List { channels, last }));
        peer.beats(REFRESH);
    }
    peer.sums(&[kept]);
    peer.beats(REFRESH);
    assert_eq!([1, 2].map(|host| peer.there(host)), [1, 1]);
    let ended = peer.world.book_of(2, lost).ended;
    assert_eq!(ended[0].1, Cause::Unrefreshed(HostId(1)));
    assert!(peer.world.book_of(2, kept).ended.is_empty());
}

#[test]
fn what_is_missed_in_two_lists_and_confirmed_then_stays() {
    let mut peer = Peer::new();
    let channel = peer.opens(0);
    for round in 0..9 {
        if round % 3 == 2 {
            peer.sums(&[channel]);
        } else {
            let channels = Vec::new();
            peer.says(Message::List(List {
                channels,
                last: true,
            }));
        }
        peer.beats(REFRESH);
    }
    assert_eq!([1, 2].map(|host| peer.there(host)), [1, 1]);
}

#[test]
fn what_an_earlier_life_or_session_says_changes_nothing() {
    let mut peer = Peer::new();
    peer.opens(0);
    let (session, theirs) = (peer.session, peer.theirs);
    for (old_session, old_theirs) in [(1, 1), (9, 0)] {
        peer.session.incarnation = old_session;
        peer.theirs.incarnation = old_theirs;
        peer.says(peer.open(5, &[0, 1, 2], &[Span::ZERO]));
        peer.says(Message::Tear(peer.channel(0), Cause::Closed(HostId(0))));
        (peer.session, peer.theirs) = (session, theirs);
        peer.said -= 2;
        peer.sums(&[peer.channel(0)]);
        peer.beats(REFRESH);
        assert_eq!([1, 2].map(|host| peer.there(host)), [1, 1]);
    }
}

#[test]
fn a_new_life_ends_what_the_one_before_had() {
    let mut peer = Peer::new();
    let channel = peer.opens(0);
    peer.session.incarnation += 1;
    peer.said = 0;
    peer.frame(0, Content::Heard);
    peer.world.run(Span::from_millis(1));
    assert_eq!([1, 2].map(|host| peer.there(host)), [0, 0]);
    let ended = peer.world.book_of(2, channel).ended;
    assert_eq!(ended[0].1, Cause::Restarted(HostId(0)));
}

#[test]
fn what_cannot_be_is_reserved_nowhere() {
    let mut peer = Peer::new();
    let none = Span::ZERO;
    let opens: [(&[u32], &[Span]); 8] = [
        (&[], &[]),
        (&[0, 1], &[]),
        (&[0, 1, 2], &[none, none]),
        (&[0, 1, 0], &[none]),
        (&[3, 1, 2], &[none]),
        (&[0, 1, 2, 3], &[none, none, none, none]),
        (&[0, 2, 1], &[none, none]),
        (&[0, 1, 2], &[Span::MAX]),
    ];
    for (number, (hosts, least)) in (0..).zip(opens) {
        peer.says(peer.open(number, hosts, least));
        peer.beats(Span::from_millis(10));
        assert_eq!([1, 2].map(|host| peer.there(host)), [0, 0], "{hosts:?}");
    }
}

#[test]
fn who_answers_what_was_not_asked_of_him_changes_nothing() {
    let mut peer = Peer::new();
    let channel = peer.opens(0);
    let hold = Hold {
        channel,
        version: 0,
    };
    let closed = Cause::Closed(HostId(2));
    let delays = vec![Span::ZERO; 3];
    peer.says(Message::Ended(channel, closed));
    peer.says(Message::Confirm(Box::new(Confirm {
        hold,
        delays,
        propagation: Span::ZERO,
    })));
    peer.says(Message::Settle(hold));
    peer.says(peer.open(0, &[0, 1, 2], &[Span::ZERO]));
    peer.beats(Span::from_millis(20));
    assert_eq!([1, 2].map(|host| peer.there(host)), [1, 1]);
}

#[test]
fn who_confirms_more_than_the_bound_gives_nobody_more() {
    let mut peer = Peer::in_place_of(2);
    let within = Span::from_millis(10);
    let opened = peer.world.open(0, 2, asked(SHARE), within);
    let channel = opened.expect("host 0 lives");
    peer.beats(Span::from_millis(5));
    let hold = Hold {
        channel,
        version: 0,
    };
    peer.says(Message::Confirm(Box::new(Confirm {
        hold,
        delays: vec![Span::MAX; 3],
        propagation: Span::ZERO,
    })));
    let node = peer.world.network.node(HostId(1)).expect("it lives");
    let listed = node.channels().next();
    let delays = listed.and_then(|one| one.delays).expect("it is confirmed");
    assert!(
        delays.before <= within && delays.own <= within,
        "{delays:?}"
    );
    peer.beats(Span::from_millis(20));
    assert_eq!([0, 1].map(|host| peer.there(host)), [0, 0]);
}
