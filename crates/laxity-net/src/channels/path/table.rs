//! Whose a frame is that comes.

use super::Label;

/// What a host knows of each channel whose frames come to it, by the labels that it gave them.
#[derive(Clone, Debug)]
pub struct Table<T>(Box<[Option<(u32, T)>]>);

/// Why a frame is nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum NotOurs {
    /// No channel has that place.
    #[error("no channel has that place")]
    Unknown,
    /// Another channel has that place: that of the frame is no more, or not yet.
    #[error("another channel has that place")]
    Stale,
}

impl<T> Table<T> {
    /// For labels from place 0 to below this one.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self((0..places).map(|_| None).collect())
    }

    /// From now on frames with this label are of that. Answers what had its place before, with its label.
    ///
    /// # Errors
    ///
    /// There is no such place; what was to have it comes back.
    pub fn insert(&mut self, label: Label, of: T) -> Result<Option<(Label, T)>, T> {
        let Some(place) = self.0.get_mut(label.index as usize) else {
            return Err(of);
        };
        let before = place.replace((label.generation, of));
        let labelled = |(generation, before)| {
            let label = Label {
                generation,
                ..label
            };
            (label, before)
        };
        Ok(before.map(labelled))
    }

    /// Whose frames with this label are. O(1).
    ///
    /// # Errors
    ///
    /// Nobody's.
    pub fn get_mut(&mut self, label: Label) -> Result<&mut T, NotOurs> {
        match self.0.get_mut(label.index as usize) {
            Some(Some((generation, of))) if *generation == label.generation => Ok(of),
            Some(Some(_)) => Err(NotOurs::Stale),
            Some(None) | None => Err(NotOurs::Unknown),
        }
    }

    /// The same, to be looked at.
    ///
    /// # Errors
    ///
    /// Nobody's.
    pub fn get(&self, label: Label) -> Result<&T, NotOurs> {
        match self.0.get(label.index as usize) {
            Some(Some((generation, of))) if *generation == label.generation => Ok(of),
            Some(Some(_)) => Err(NotOurs::Stale),
            Some(None) | None => Err(NotOurs::Unknown),
        }
    }

    /// What has this place, with its label.
    pub fn at(&mut self, index: u32) -> Option<(Label, &mut T)> {
        let (generation, of) = self.0.get_mut(index as usize)?.as_mut()?;
        let generation = *generation;
        Some((Label { index, generation }, of))
    }

    /// Frames with this label are nobody's from now on. Answers whose they were.
    ///
    /// # Errors
    ///
    /// Nobody's.
    pub fn remove(&mut self, label: Label) -> Result<T, NotOurs> {
        self.get_mut(label)?;
        let place = self.0[label.index as usize].take();
        place.map(|(_, of)| of).ok_or(NotOurs::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_before_is_nobodys() {
        let label = |index, generation| Label { index, generation };
        let mut table = Table::new(2);
        assert_eq!(table.insert(label(1, 0), 'a'), Ok(None));
        assert_eq!(table.insert(label(2, 0), 'z'), Err('z'));
        assert_eq!(table.get_mut(label(1, 0)), Ok(&mut 'a'));
        assert_eq!(table.insert(label(1, 1), 'b'), Ok(Some((label(1, 0), 'a'))));
        assert_eq!(table.get_mut(label(1, 0)), Err(NotOurs::Stale));
        assert_eq!(table.remove(label(1, 0)), Err(NotOurs::Stale));
        for unknown in [label(0, 0), label(2, 0), label(u32::MAX, 0)] {
            assert_eq!(table.get_mut(unknown), Err(NotOurs::Unknown));
        }
        assert_eq!(table.remove(label(1, 1)), Ok('b'));
        assert_eq!(table.get_mut(label(1, 1)), Err(NotOurs::Unknown));
    }
}
