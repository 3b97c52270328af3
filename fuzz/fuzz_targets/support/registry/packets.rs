//! The packets that arrive.

/// Packets that tell each two filters apart: for each pair one that both want, if there can be, and one that only either does.
pub(super) fn universe() -> Vec<Vec<u8>> {
    let hosts = [
        [10, 0, 0, 1],
        [10, 0, 0, 9],
        [10, 1, 0, 2],
        [192, 168, 0, 1],
    ];
    let mut all = Vec::new();
    for protocol in [17, 6] {
        for host in hosts {
            for ports in [[7, 7], [7, 9], [9, 7], [9, 9]] {
                all.push(framed(None, [8, 0], &ipv4(protocol, host, ports)));
            }
        }
    }
    for (tag, port) in [(5, 7), (5, 9), (6, 7)] {
        all.push(framed(Some(tag), [8, 0], &ipv4(17, hosts[0], [9, port])));
    }
    for (protocol, port) in [(17, 7), (17, 9), (6, 7)] {
        let mut packet = vec![0x60, 0, 0, 0, 0, 20, protocol, 64];
        packet.resize(40, 1);
        packet.extend(transport([9, port]));
        all.push(framed(None, [0x86, 0xdd], &packet));
    }
    let mut arp = vec![0, 1, 8, 0, 6, 4, 0, 1];
    arp.resize(28, 1);
    all.push(framed(None, [8, 6], &arp));
    all.push(framed(None, [8, 0], &ipv4(1, hosts[0], [7, 7])));
    // A UDP length that cannot be.
    let mut lies = ipv4(17, hosts[0], [7, 7]);
    lies[25] = 200;
    all.push(framed(None, [8, 0], &lies));
    assert!(all.len() <= 64);
    all
}

fn framed(tag: Option<u8>, kind: [u8; 2], packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    if let Some(tag) = tag {
        frame.extend([0x81, 0, 0, tag]);
    }
    frame.extend(kind);
    frame.extend(packet);
    frame
}

fn ipv4(protocol: u8, to: [u8; 4], ports: [u8; 2]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 7];
    packet.extend(to);
    packet.extend(transport(ports));
    packet
}

/// Twenty bytes that are both a UDP and a TCP header, as far as anybody looks: a UDP length of 20, and no more than a header of TCP.
fn transport([from, to]: [u8; 2]) -> Vec<u8> {
    let mut header = vec![0, from, 0, to, 0, 20, 0, 0, 0, 0, 0, 0, 0x50];
    header.resize(20, 0);
    header
}
