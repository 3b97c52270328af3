//! A neighbour that is no node: it says what the test says, and may be lost, mad or of an earlier life.

use std::sync::Arc;

use laxity_model::channels::asked::{Asked, Shortage};
use laxity_model::channels::clocks::Stamp;
use laxity_model::channels::signalling::link::Content;
use laxity_model::channels::signalling::{
    Cause, ChannelId, Confirm, Digest, Effect, Frame, Hold, HostId, Label, LinkId, List, Message,
    Node, Open, Refusal, Session, Summary, Terms,
};
use laxity_model::{Instant, Span};

use super::admission::asked;
use super::world::{SHARE, World};

type Said = Message<Asked, Shortage>;

/// By which the peer says that it knows a channel's frames.
const LABEL: Label = Label {
    index: 7,
    generation: 3,
};
/// The first that a node gives.
const FIRST: Label = Label {
    index: 0,
    generation: 0,
};

/// In place of an end of three hosts, beside host 1.
struct Peer {
    world: World,
    /// As host 1 counts it.
    link: LinkId,
    session: Session,
    theirs: Session,
    said: u64,
}

impl Peer {
    /// In place of host 0: before host 1.
    fn new() -> Self {
        Self::at(HostId(0), LinkId(0))
    }

    /// In place of host 2: behind host 1.
    fn behind() -> Self {
        Self::at(HostId(2), LinkId(1))
    }

    fn at(host: HostId, link: LinkId) -> Self {
        let mut world = World::line(3);
        world.kill(host);
        world.run(Span::from_millis(20));
        let session = |incarnation| Session {
            incarnation,
            count: 0,
        };
        let mut peer = Self {
            world,
            link,
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
        self.open_as(0, number, hosts, least)
    }

    /// In that version.
    fn open_as(&self, version: u32, number: u32, hosts: &[u32], least: &[Span]) -> Said {
        let channel = self.channel(number);
        let open = Open {
            hold: Hold { channel, version },
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

    /// A summary of these, after all that it was told.
    fn sums(&mut self, channels: &[ChannelId]) {
        self.sums_after(40, channels);
    }

    /// A summary of these, when it had heard so many messages.
    fn sums_after(&mut self, heard: u64, channels: &[ChannelId]) {
        let mut digest = Digest::default();
        channels.iter().for_each(|channel| digest.add(*channel));
        self.says(Message::Summary(Summary { digest, heard }));
    }

    /// How many of its summaries were not what host 1 has.
    fn differed(&self) -> u64 {
        let node = self.world.network.node(HostId(1)).expect("it lives");
        node.differed()
    }

    fn confirms(&mut self, hold: Hold, label: Label) {
        self.says(Message::Confirm(Box::new(Confirm {
            hold,
            label,
            delays: vec![Span::ZERO; 3],
            propagation: Span::ZERO,
        })));
        self.beats(Span::from_millis(10));
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

/// Host 1 has said CONFIRM and, of the same channel, ENDED. The peer has not heard the second as it says a summary.
fn ends_behind(peer: &mut Peer) -> ChannelId {
    let channel = peer.opens(0);
    peer.world.close(HostId(2), channel, false);
    peer.beats(Span::from_millis(10));
    assert_eq!([1, 2].map(|host| peer.there(host)), [0, 0]);
    peer.sums_after(1, &[channel]);
    assert_eq!(peer.differed(), 0);
    channel
}

#[test]
fn what_ends_on_both_sides_of_a_link_at_once_is_in_no_summary_after_that() {
    let mut peer = Peer::new();
    let channel = ends_behind(&mut peer);
    peer.says(Message::Tear(channel, Cause::Closed(HostId(0))));
    peer.sums_after(1, &[]);
    assert_eq!(peer.differed(), 0);
}

#[test]
fn what_ends_while_it_is_to_be_changed_is_in_no_summary_after_that() {
    let mut peer = Peer::new();
    let channel = ends_behind(&mut peer);
    let change = peer.open_as(1, 0, &[0, 1, 2], &[Span::ZERO]);
    peer.says(change);
    peer.sums_after(1, &[channel]);
    assert_eq!(peer.differed(), 0);
    // ENDED has come, and the refusal of the change has not.
    peer.sums_after(2, &[]);
    assert_eq!(peer.differed(), 0);
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
    peer.says(Message::Ended(channel, closed));
    peer.confirms(hold, LABEL);
    peer.says(Message::Settle(hold));
    peer.says(peer.open(0, &[0, 1, 2], &[Span::ZERO]));
    peer.beats(Span::from_millis(20));
    assert_eq!([1, 2].map(|host| peer.there(host)), [1, 1]);
}

/// A channel is opened, and then changed, over host 1 to the peer, which confirms with these labels.
fn changed_with(labels: [Label; 2]) -> (Peer, Hold) {
    let mut peer = Peer::behind();
    let within = Span::from_millis(10);
    let opened = peer.world.open(0, 2, asked(SHARE), within);
    let channel = opened.expect("host 0 lives");
    peer.beats(Span::from_millis(10));
    let version = 0;
    peer.confirms(Hold { channel, version }, labels[0]);
    let changed = peer.world.change(channel, asked(SHARE / 2), within);
    let hold = changed.expect("it is open");
    peer.beats(Span::from_millis(10));
    peer.confirms(hold, labels[1]);
    (peer, hold)
}

#[test]
fn a_channel_keeps_its_label_when_it_changes() {
    let (peer, hold) = changed_with([LABEL; 2]);
    let book = peer.world.book_of(0, hold.channel);
    assert_eq!((book.opened.len(), book.ended.len()), (2, 0));
    let nodes = (0..2).filter_map(|host| peer.world.network.node(HostId(host)));
    let onward: Vec<Option<Label>> = nodes.flat_map(Node::channels).map(|one| one.next).collect();
    // Host 1 tells its own, and not what it was told.
    assert_eq!(onward, [Some(FIRST), Some(LABEL)]);
}

#[test]
fn who_gives_a_channel_another_label_with_a_change_loses_it() {
    let (index, generation) = (LABEL.index + 1, LABEL.generation + 1);
    for other in [
        Label { index, ..LABEL },
        Label {
            generation,
            ..LABEL
        },
    ] {
        let (peer, hold) = changed_with([LABEL, other]);
        assert_eq!([0, 1].map(|host| peer.there(host)), [0, 0]);
        let book = peer.world.book_of(0, hold.channel);
        let cause = Cause::Nonsense(HostId(1));
        assert_eq!(book.refused, [(hold, Refusal::Ended(cause))]);
        let ended: Vec<Cause> = book.ended.iter().map(|one| one.1).collect();
        assert_eq!(ended, [cause]);
    }
}

#[test]
fn a_confirmation_that_is_said_again_has_the_same_label() {
    let mut peer = Peer::new();
    let channel = peer.opens(0);
    peer.says(Message::Tear(channel, Cause::Closed(HostId(0))));
    peer.beats(Span::from_millis(10));
    peer.says(peer.open(1, &[0, 1, 2], &[Span::ZERO]));
    peer.world.run(Span::from_millis(5));
    for again in 1..4 {
        let labels: Vec<Label> = peer
            .world
            .network
            .call(HostId(1), |node, now, out| {
                node.wake(now + Terms::default().resend * again, out);
                out.iter().filter_map(confirmed).collect()
            })
            .expect("it lives");
        let expected = Label {
            generation: 1,
            ..FIRST
        };
        assert_eq!(labels, [expected]);
    }
}

/// Which label is confirmed to host 0.
fn confirmed(effect: &Effect<Asked, Shortage>) -> Option<Label> {
    match effect {
        Effect::Send(LinkId(0), frame) => match &frame.content {
            Content::Message(_, Message::Confirm(confirm)) => Some(confirm.label),
            _ => None,
        },
        _ => None,
    }
}

#[test]
fn who_confirms_more_than_the_bound_gives_nobody_more() {
    let mut peer = Peer::behind();
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
        label: LABEL,
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
