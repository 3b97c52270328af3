//! Programs of the classic packet filter, as `tcpdump -ddd` prints them, run as the kernel would (net/core/filter.c, bpf(4)).

use laxity_model::nif::filter::classic::Instruction;

/// A program: code, jump if true, jump if false, number.
pub(super) struct Program(Vec<(u16, usize, usize, u32)>);

impl From<Vec<Instruction>> for Program {
    fn from(instructions: Vec<Instruction>) -> Self {
        let all = instructions.into_iter().map(|one| {
            let [yes, no] = [one.jump_true, one.jump_false].map(usize::from);
            (one.code, yes, no, one.operand)
        });
        Self(all.collect())
    }
}

impl Program {
    /// From what is printed: how many instructions, and one a line. `None` if it is something else.
    pub(super) fn parse(printed: &str) -> Option<Self> {
        let mut lines = printed.lines();
        let count: usize = lines.next()?.trim().parse().ok()?;
        let instruction = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let mut next = || words.next()?.parse::<u32>().ok();
            let code = u16::try_from(next()?).ok()?;
            Some((code, next()? as usize, next()? as usize, next()?))
        };
        let all: Option<Vec<_>> = lines.map(instruction).collect();
        all.filter(|all| all.len() == count).map(Self)
    }

    /// Whether it takes a packet.
    ///
    /// # Panics
    ///
    /// On an instruction that no filter is compiled to.
    pub(super) fn takes(&self, packet: &[u8]) -> bool {
        self.takes_untagged(packet, None)
    }

    /// The same of a packet out of which the kernel has taken this tag.
    pub(super) fn takes_untagged(&self, packet: &[u8], tag: Option<u16>) -> bool {
        let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [0_u32; 16], 0);
        loop {
            let (code, yes, no, k) = self.0[at];
            at += 1;
            // Class, and what it loads from or is compared with.
            match code & 7 {
                0 | 1 => {
                    let Some(value) = load((packet, tag), code, k, x, &memory) else {
                        return false;
                    };
                    if code & 7 == 0 {
                        a = value;
                    } else {
                        x = value;
                    }
                }
                2 => memory[k as usize] = a,
                3 => memory[k as usize] = x,
                4 => {
                    let operand = if code & 8 == 0 { k } else { x };
                    a = match code & 0xf0 {
                        0x00 => a.wrapping_add(operand),
                        0x10 => a.wrapping_sub(operand),
                        0x20 => a.wrapping_mul(operand),
                        0x40 => a | operand,
                        0x50 => a & operand,
                        0x60 => a << operand,
                        0x70 => a >> operand,
                        other => panic!("arithmetic {other:#x}"),
                    };
                }
                5 => {
                    let operand = if code & 8 == 0 { k } else { x };
                    at += match code & 0xf0 {
                        0x00 => k as usize,
                        0x10 => pick(a == operand, yes, no),
                        0x20 => pick(a > operand, yes, no),
                        0x30 => pick(a >= operand, yes, no),
                        0x40 => pick(a & operand != 0, yes, no),
                        other => panic!("jump {other:#x}"),
                    };
                }
                6 => return if code & 0x18 == 0x10 { a > 0 } else { k > 0 },
                _ if code & 0x80 == 0 => x = a,
                _ => a = x,
            }
        }
    }
}

fn pick(is_true: bool, yes: usize, no: usize) -> usize {
    if is_true { yes } else { no }
}

/// What is loaded; `None` beyond the packet's end.
fn load(
    (packet, tag): (&[u8], Option<u16>),
    code: u16,
    k: u32,
    x: u32,
    memory: &[u32; 16],
) -> Option<u32> {
    let at = match code & 0xe0 {
        0x00 => return Some(k),
        // SKF_AD_VLAN_TAG_PRESENT, SKF_AD_VLAN_TAG
        0x20 if k == 0xffff_f030 => return Some(tag.is_some().into()),
        0x20 if k == 0xffff_f02c => return Some(tag.unwrap_or_default().into()),
        0x20 => k as usize,
        0x40 => k.wrapping_add(x) as usize,
        0x60 => return Some(memory[k as usize]),
        0x80 => return u32::try_from(packet.len()).ok(),
        0xa0 => {
            return packet
                .get(k as usize)
                .map(|byte| 4 * (u32::from(*byte) & 15));
        }
        other => panic!("load {other:#x}"),
    };
    let long = match code & 0x18 {
        0x00 => 4,
        0x08 => 2,
        _ => 1,
    };
    let bytes = packet.get(at..at + long)?;
    Some(
        bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u32::from(*byte)),
    )
}
