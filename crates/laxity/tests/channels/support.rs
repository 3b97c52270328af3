//! Nodes that are each other's neighbours.

use std::net::{SocketAddr, UdpSocket};
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use laxity::Span;
use laxity::channels::{
    HostId, Identity, Listens, Name, Neighbour, Node, Own, SecretKey, Setup, Spec, Traffic,
};

/// Two addresses of the loop that are free now.
pub(crate) fn addresses() -> [SocketAddr; 2] {
    let bound = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    bound.map(|socket| socket.local_addr().unwrap())
}

/// What makes the nodes of two neighbours, with these addresses.
pub(crate) fn setups(at: [SocketAddr; 2], seal: bool) -> [Setup; 2] {
    setups_of(at, seal, [(); 2].map(|()| SecretKey::generate().unwrap()))
}

/// The same with these keys.
pub(crate) fn setups_of(at: [SocketAddr; 2], seal: bool, secrets: [SecretKey; 2]) -> [Setup; 2] {
    let identities = secrets.map(Identity::new);
    let keys = [0, 1].map(|host: usize| identities[host].public());
    let mut hosts = identities.into_iter().enumerate();
    [(); 2].map(|()| {
        let (own, identity) = hosts.next().unwrap();
        let other = 1 - own;
        let neighbour = Neighbour {
            host: HostId(other as u32),
            local: at[own],
            at: at[other],
            key: keys[other],
            seal,
            rate: NonZeroU64::new(100_000_000).unwrap(),
            overhead: 0,
            propagation: Span::ZERO,
            unseen: Span::ZERO,
            own: Own::None,
            is_shaped: true,
        };
        Setup::new(HostId(own as u32), Arc::new(identity), vec![neighbour])
    })
}

/// Both nodes, which know each other.
pub(crate) fn nodes(at: [SocketAddr; 2], seal: bool) -> [Node; 2] {
    let both = setups(at, seal).map(|setup| Node::start(setup).unwrap());
    for node in &both {
        assert!(node.wait_for_neighbours(None).unwrap());
    }
    both
}

pub(crate) fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

/// From host 0 to host 1: so many bytes, each millisecond, within 20 ms.
pub(crate) fn spec(bytes: u32, burst: u32) -> Spec {
    let traffic = Traffic::new(bytes, (1, Span::from_millis(1)), burst).unwrap();
    Spec::new(
        name("control"),
        vec![HostId(1)],
        traffic,
        Span::from_millis(20),
    )
}

pub(crate) fn listens(bytes: u32) -> Listens {
    Listens::to(NonZeroU32::new(bytes).unwrap())
}

/// The same where 100 messages may wait for an application that the machine keeps from taking them.
pub(crate) fn waits(bytes: u32) -> Listens {
    Listens {
        room: NonZeroU32::new(100).unwrap(),
        ..listens(bytes)
    }
}
