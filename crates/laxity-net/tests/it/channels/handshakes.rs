//! Whatever is lost, doubled, reordered, sent again or forgotten on the way: afterwards there is one session, and nothing was heard that was not said, or twice.

use laxity_model::Span;
use proptest::prelude::*;
use proptest::sample::Index;

use super::hosts::{Agreed, Hosts, MILLISECOND, Outcome};

/// What befalls the hosts and the frames between them; of the two, that of the number.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Time(u16),
    Poll(usize),
    Say(usize),
    Arrive(usize, Index),
    Lost(usize, Index),
    Doubled(usize, Index),
    Replayed(usize, Index),
    Restart(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    let host = 0..2_usize;
    let frame = (host.clone(), any::<Index>());
    prop_oneof![
        4 => (1..400_u16).prop_map(Happens::Time),
        4 => host.clone().prop_map(Happens::Poll),
        3 => host.clone().prop_map(Happens::Say),
        8 => frame.clone().prop_map(|(host, frame)| Happens::Arrive(host, frame)),
        2 => frame.clone().prop_map(|(host, frame)| Happens::Lost(host, frame)),
        1 => frame.clone().prop_map(|(host, frame)| Happens::Doubled(host, frame)),
        1 => frame.prop_map(|(host, frame)| Happens::Replayed(host, frame)),
        1 => host.prop_map(Happens::Restart),
        1 => (40_000..60_000_u16).prop_map(Happens::Time),
    ]
}

fn one(hosts: &mut Hosts, happens: Happens) {
    match happens {
        Happens::Time(milliseconds) => {
            hosts.now += Span::from_millis(milliseconds.into());
        }
        Happens::Poll(host) => hosts.poll(host),
        Happens::Say(host) => {
            let _ = hosts.say(host);
        }
        Happens::Arrive(host, frame) if !hosts.to[host].is_empty() => {
            let place = frame.index(hosts.to[host].len());
            let frame = hosts.to[host].remove(place);
            if hosts.open(host, frame) == Ok(Outcome::Agreed) {
                hosts.say(host).expect("there is a session");
            }
        }
        Happens::Lost(host, frame) if !hosts.to[host].is_empty() => {
            let place = frame.index(hosts.to[host].len());
            hosts.to[host].remove(place);
        }
        Happens::Doubled(host, frame) if !hosts.to[host].is_empty() => {
            let frame = frame.get(&hosts.to[host]).clone();
            hosts.to[host].push(frame);
        }
        Happens::Replayed(host, frame) if !hosts.seen[host].is_empty() => {
            let frame = frame.get(&hosts.seen[host]).clone();
            hosts.to[host].push(frame);
        }
        Happens::Restart(host) => hosts.restart(host),
        _ => {}
    }
}

fn cases() -> u32 {
    let asked = std::env::var("LAXITY_HANDSHAKES").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn all_that_befalls_a_handshake_ends_in_one_session(
        story in prop::collection::vec(happens(), 0..60),
    ) {
        let mut hosts = Hosts::new(Agreed::default());
        story.into_iter().for_each(|happens| one(&mut hosts, happens));
        // The longest wait for a further try, and a handshake.
        hosts.undisturbed(Span::from_millis(16 * 250 + 1_000));
        hosts.now += MILLISECOND;
        hosts.assert_agree();
    }
}
