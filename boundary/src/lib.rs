//! The C interface of Peregrine: what the server plug-in calls.
