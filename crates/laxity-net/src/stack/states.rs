//! What the state of a socket says.

use smoltcp::iface::SocketSet;
use smoltcp::socket::{Socket, tcp};

/// That of the connection among these, if there is one.
pub(super) fn state_of(sockets: &SocketSet<'_>) -> Option<tcp::State> {
    sockets.iter().find_map(|(_, socket)| match socket {
        Socket::Tcp(socket) => Some(socket.state()),
        _ => None,
    })
}

/// Its peer has all but the end of what was sent.
pub(super) fn is_ending(socket: &Socket<'_>) -> bool {
    use tcp::State::{Closing, FinWait1, LastAck};
    matches!(socket, Socket::Tcp(socket)
        if matches!(socket.state(), FinWait1 | Closing | LastAck) && socket.send_queue() == 0)
}

/// Both ends have ended, or nothing of it is left.
pub(super) fn is_over(socket: &Socket<'_>) -> bool {
    matches!(socket, Socket::Tcp(socket) if match socket.state() {
        tcp::State::TimeWait => true,
        tcp::State::Closed => socket.remote_endpoint().is_none(),
        _ => false,
    })
}
