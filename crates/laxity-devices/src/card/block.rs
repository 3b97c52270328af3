//! The signal processing of a stream: a function of one block, and the same repeated as load.

/// What the frames of a block were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Frames whose CRC was right.
    pub good: u32,
    /// Frames whose CRC was wrong.
    pub damaged: u32,
    /// A number made from all that was decided or computed: the same for the same work.
    pub digest: u32,
}

/// Works on blocks of samples.
pub trait Block: Send {
    /// Works on block `number`, counted from 0: reads `input`, which is empty for a device that is only written, and fills
    /// `output`, which is empty for one that is only read.
    fn process(&mut self, number: u64, input: &[i16], output: &mut [i16]) -> Checked;
}

/// A processor and others like it, which do the same work again: the load that makes up the share of a slower machine. Each has a
/// state of its own, and must come to the result of the first.
pub struct Repeated {
    first: Box<dyn Block>,
    further: Vec<Box<dyn Block>>,
    scratch: Vec<i16>,
}

impl Repeated {
    /// `1 + further` processors, each made by `make`.
    pub fn new(further: usize, make: impl Fn() -> Box<dyn Block>) -> Self {
        Self {
            first: make(),
            further: (0..further).map(|_| make()).collect(),
            scratch: Vec::new(),
        }
    }

    /// The work of one block, as often as there are processors. Returns what the first came to, and whether another differed.
    pub fn process(&mut self, number: u64, input: &[i16], output: &mut [i16]) -> (Checked, bool) {
        let checked = self.first.process(number, input, output);
        let mut differs = false;
        self.scratch.resize(output.len(), 0);
        for again in &mut self.further {
            let same = again.process(number, input, &mut self.scratch);
            differs |= same != checked || self.scratch != output;
        }
        (checked, differs)
    }
}
