//! TCP/IP on a live interface.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use laxity_linux::host::alone::Futex;
use laxity_linux::net::{AnyMemory, addresses};
use laxity_linux::os::clock;
use laxity_net::buffers::Sleeper;
use laxity_net::stack::{Config, Stack};

use super::{Error, Interface};

/// A host's TCP/IP on an interface, and the thread that does what no socket of it does. Dropped, the thread has ended: before the interface is closed.
pub struct LiveStack {
    stack: Stack<AnyMemory>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Interface {
    /// Makes a host of this interface, with addresses of its own: what no other client registered for is its. The hardware address is the interface's, a packet is no longer
    /// than that carries, and ports and sequence numbers are drawn anew, whatever the configuration says of these.
    ///
    /// ```
    /// use laxity::net::sockets::TcpListener;
    /// use laxity::net::{Interface, Options, StackConfig};
    ///
    /// let interface = Interface::open("udp:127.0.0.1:0-127.0.0.1:9", Options::default())?;
    /// let host = interface.stack(StackConfig {
    ///     addresses: vec![([10, 0, 0, 2].into(), 24)],
    ///     ..StackConfig::default()
    /// })?;
    /// let listener = TcpListener::bind(&host, 7, 4)?;
    /// assert!(listener.try_accept().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::KernelsAddress`] where the kernel has the interface, too, or [`Error::KernelsUnknown`]; [`Error::Stack`], or there is no driver any more.
    pub fn stack(&self, config: Config) -> Result<LiveStack, Error> {
        let facts = self.facts();
        let config = Config {
            hardware: facts.address,
            mtu: config.mtu.min(facts.mtu),
            seed: RandomState::new().hash_one(clock::now()),
            ..config
        };
        // The driver's thread is in the namespace in which the interface was opened.
        let made = self.ask(move |driver| -> Result<_, Error> {
            if driver.facts().is_shared_with_kernel {
                let kernels = addresses::kernels().map_err(Error::KernelsUnknown)?;
                let mut own = config.addresses.iter().map(|(address, _)| *address);
                if let Some(address) = own.find(|address| kernels.contains(address)) {
                    return Err(Error::KernelsAddress(address));
                }
            }
            let clock = Arc::new(clock::now);
            Ok(Stack::new(driver, config, Sleeper::new(Futex), clock)?)
        });
        let stack = made??;
        let is_over = Arc::<AtomicBool>::default();
        let (serves, ends) = (stack.clone(), Arc::clone(&is_over));
        let builder = thread::Builder::new().name("laxity-tcpip".to_owned());
        let thread = builder.spawn(move || serves.serve(|| ends.load(Ordering::Relaxed)));
        Ok(LiveStack {
            stack,
            is_over,
            thread: Some(thread.map_err(Error::NoThread)?),
        })
    }
}

impl Deref for LiveStack {
    type Target = Stack<AnyMemory>;

    fn deref(&self) -> &Stack<AnyMemory> {
        &self.stack
    }
}

impl Drop for LiveStack {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that has panicked has ended, too.
            thread.join().ok();
        }
    }
}
