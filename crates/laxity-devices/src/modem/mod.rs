//! The modem as a device.
