//! The network interface framework's decisions: whose a packet is, whether it is kept, what is sent next, how urgent it is.
//!
//! Liao, Tan, Campbell, "A Fast, Flexible Network Interface Framework", 1996. Many *clients* share an interface through its
//! *driver*. Each has buffers of its own and gets a packet only for an empty one that it gave before, so that none starves another
//! (§2, the Resource Exchanger); each is called when its packet arrives.
//!
//! * [`link`]: what a driver asks of an interface, and what every interface does alike.
//! * [`registry`]: whose a packet is: the seam of a driver's key.
//! * [`frame`]: from the bytes of a frame to what a filter may look at.
//! * [`filter`]: which packets a client wants, in a subset of the language of pcap.
//! * [`table`]: whose a packet is, the most specific filter's.
//! * [`frames`]: the key of a driver of Ethernet frames, of these.
//! * [`host`]: which addresses are one host's.
//! * [`exchange`]: whether a packet is kept; where each buffer is.
//! * [`most`]: how much a driver takes at the most, and what that is charged.
//! * [`overlong`]: whether it takes longer than that says.
//! * [`urgency`]: from a packet's arrival to its deadline, and whether it is early.
//! * [`qos`]: who of those who take packets is made how urgent, by what clients report.
//! * [`transmit`]: what is sent next, and how much is out of reach.
//! * [`wire`]: how long a frame takes a wire that is not real, and what goes wrong there.

pub mod exchange;
pub mod filter;
pub mod frame;
pub mod frames;
pub mod host;
pub mod link;
pub mod most;
pub mod overlong;
pub mod qos;
pub mod registry;
pub mod table;
pub mod transmit;
pub mod urgency;
pub mod wire;
