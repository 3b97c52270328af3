//! What slot tables make of requests.
