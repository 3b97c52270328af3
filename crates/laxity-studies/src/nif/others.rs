//! What others had of this machine's processors while something was measured, of which no witness tells: ordinary threads that nobody waits for, and who still take caches, and the turns of a kernel thread that carries packets.

use std::fs;

/// More than so much of all processors makes a number of this machine doubtful that depends on how fast it is, in parts per million: our criterion.
pub(super) const LIMIT_PPM: u64 = 50_000;

/// How much of the processors was had by everybody's programs, by this one, and how much there was, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Had {
    everybody: u64,
    own: u64,
    there: u64,
}

impl Had {
    /// Until now; `None` where the kernel does not say.
    pub(super) fn now() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        Self::of(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    fn of(stat: &str, own: &str) -> Option<Self> {
        let line = stat.lines().find(|line| line.starts_with("cpu "))?;
        let ticks = line.split_ascii_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.map_while(|one| one.parse().ok()).collect();
        let [user, nice, ..] = ticks[..] else {
            return None;
        };
        // Behind the name, which may have spaces of its own, the twelfth is the time in user mode.
        let (_, behind) = own.rsplit_once(')')?;
        Some(Self {
            everybody: user + nice,
            own: behind.split_ascii_whitespace().nth(11)?.parse().ok()?,
            there: ticks.iter().sum(),
        })
    }

    /// What others had of it since then, in parts per million of all processors; `None` of no time.
    pub(super) fn others_since(self, before: Self) -> Option<u64> {
        let since = |of: fn(&Self) -> u64| of(&self).saturating_sub(of(&before));
        let others = since(|had| had.everybody).saturating_sub(since(|had| had.own));
        (others * 1_000_000).checked_div(since(|had| had.there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_everybody_but_this_program() {
        let had = |user, nice, idle, own| {
            let stat = format!("cpu  {user} {nice} 5 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
            let own = format!("7 (a ) b) R 1 7 7 0 -1 0 0 0 0 0 {own} 9 0 0");
            Had::of(&stat, &own).expect("it is the kernel's form")
        };
        let before = had(100, 10, 1_000, 40);
        // Of 200 ticks everybody had 90, and this program 50.
        let after = had(180, 20, 1_110, 90);
        assert_eq!(after.others_since(before), Some(200_000));
        assert_eq!(before.others_since(before), None);
        assert!(Had::of("cpu0 1 1", "").is_none());
        assert!(Had::now().is_some());
    }
}
