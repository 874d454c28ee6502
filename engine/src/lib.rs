//! Peregrine: an embeddable transactional storage engine.
